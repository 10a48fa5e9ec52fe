package elector

import (
	"github.com/goneli/neli/internal/clock"
)

// lookBack asks for reading to begin again, farther back, where all that was there has been
// read and who holds what is not known from it: a Snapshot may lie before, or one that was
// found may tell of a time before reading began. The other members come first, as any of them
// answers a Hello with a Snapshot. Without an answer there is nobody to answer, and the wait
// for the longest lease that there may be is longer than the reading. It begins anew with each
// reset, by a few seconds in all.
func (c *channel) lookBack(now clock.Instant) {
	if c.shallow || c.log.Known() {
		return
	}
	if c.announcements.read == 0 && c.log.Offset()+1 >= c.end {
		c.announcements.read = now.Mono
	}
	if c.announcements.back || now.Mono < c.lookBackAt(now) {
		return
	}
	c.announcements.back = true
	c.ready.Back = append(c.ready.Back, c.index)
}

// lookBackAt is when that is due. Newcomers take turns: who has found a Snapshot writes one for
// the others.
func (c *channel) lookBackAt(now clock.Instant) clock.Mono {
	if c.shallow || c.announcements.read == 0 || c.announcements.back || c.log.Known() {
		return clock.Never
	}
	return c.announcements.read.Add(clock.Behind(c.set.T) + c.turn(uint64(c.index), now))
}
