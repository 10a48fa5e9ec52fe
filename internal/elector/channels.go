package elector

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/clock"
)

// channels are the logs of a shard.
type channels []*channel

// CaughtUp reports whether enough logs are caught up to believe that a role is vacant: one log, or
// a majority of several.
func (cs *channels) CaughtUp() bool {
	caught := 0
	for _, c := range *cs {
		if c.announcements.IsCaughtUp() {
			caught++
		}
	}
	return caught > len(*cs)/2
}

// reachable is the log in which this process announces itself: its home, or
// the next one where own records come back. If there is none, it is the one where it has said
// Hello least recently: each has its turn, since only a record can show that a log works again.
func (cs channels) reachable(home int) *channel {
	rest := cs[home]
	for i := range cs {
		c := cs[(home+i)%len(cs)]
		if !c.addressable() {
			continue
		}
		if c.link.Clear() {
			return c
		}
		if !rest.addressable() || c.announcements.NextHello() < rest.announcements.NextHello() {
			rest = c
		}
	}
	return rest
}

// claiming reports whether Claims are in flight.
func (cs channels) claiming() bool {
	return slices.ContainsFunc(cs, func(c *channel) bool { n, _ := c.log.Claiming(); return n > 0 })
}

// Old reports whether evidence at an offset was in the log before this process started, so that
// its age is unknown. Offsets of several logs say nothing.
func (cs *channels) Old(offset int64) bool {
	return len(*cs) == 1 && offset < (*cs)[0].end
}

// Read is when the logs that count were last read: the only one, or the majority that was read last.
func (cs *channels) Read() clock.Instant {
	if len(*cs) == 1 {
		return (*cs)[0].readAt
	}
	at := make([]clock.Instant, len(*cs))
	for i, c := range *cs {
		at[i] = c.readAt
	}
	slices.SortFunc(at, func(a, b clock.Instant) int { return cmp.Compare(b.Mono, a.Mono) })
	return at[len(at)/2]
}

// Deaf reports that a process which last read something at a time should have read more by now: an
// own record has not come back for T/4, or the majority of small logs was not heard for T/2.
func (cs *channels) Deaf(read, now clock.Instant) bool {
	c := (*cs)[0]
	if len(*cs) > 1 {
		return now.Mono.Sub(read.Mono) >= clock.Recent(c.set.T)
	}
	return !c.link.IsReading() && c.link.WaitsSince(read.Mono) <= now.Mono.Add(-clock.Stalled(c.set.T))
}
