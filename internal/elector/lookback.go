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
func (n *Node) lookBack(p *partition, now clock.Instant) {
	if n.rolesOf(p).lease.Paces() || p.log.Known() {
		return
	}
	if p.announcements.read == 0 && p.log.Offset()+1 >= p.end {
		p.announcements.read = now.Mono
	}
	if p.announcements.back || now.Mono < n.lookBackAt(p, now) {
		return
	}
	p.announcements.back = true
	n.ready.Back = append(n.ready.Back, p.index)
}

// lookBackAt is when that is due. Newcomers take turns: who has found a Snapshot writes one for
// the others.
func (n *Node) lookBackAt(p *partition, now clock.Instant) clock.Mono {
	if n.rolesOf(p).lease.Paces() || p.announcements.read == 0 || p.announcements.back || p.log.Known() {
		return clock.Never
	}
	return p.announcements.read.Add(clock.Behind(n.set.T) + n.turn(uint64(p.index), now))
}
