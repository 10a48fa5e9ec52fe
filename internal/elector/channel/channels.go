package channel

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/clock"
)

// Channels are the logs of a shard, or of a process.
type Channels []*Channel

// CaughtUp reports whether enough logs are caught up to believe that a role is vacant: one log, or
// a majority of several.
func (cs *Channels) CaughtUp() bool {
	caught := 0
	for _, c := range *cs {
		if c.Announcements.IsCaughtUp() {
			caught++
		}
	}
	return caught > len(*cs)/2
}

// Reachable is the log in which this process announces itself: its home, or the next one that is Clear.
// If there is none, it is the one where it has said Hello least recently: each has its turn, since only
// a record can show that a log works again.
func (cs Channels) Reachable(home int) *Channel {
	rest := cs[home%len(cs)] // a partition's shard has one log
	for i := range cs {
		c := cs[(home+i)%len(cs)]
		if !c.Addressable() {
			continue
		}
		if c.Link.Clear() {
			return c
		}
		if !rest.Addressable() || c.Announcements.NextHello() < rest.Announcements.NextHello() {
			rest = c
		}
	}
	return rest
}

// Claiming reports whether Claims are in flight.
func (cs Channels) Claiming() bool {
	return slices.ContainsFunc(cs, func(c *Channel) bool { n, _ := c.Log.Claiming(); return n > 0 })
}

// Old reports whether evidence at an offset was in the log when reading began, so that its age is
// unknown. The offset is −1 then if the log is small; offsets of several logs say nothing.
func (cs *Channels) Old(offset int64) bool {
	return len(*cs) == 1 && (offset < 0 || !(*cs)[0].small && !(*cs)[0].IsNew(offset))
}

// Read is when the logs that count were last read: the only one, or the majority that was read last.
func (cs *Channels) Read() clock.Instant {
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
// own record was awaited in vain for T/4 since then, or no majority of the small logs was heard for T/2.
func (cs *Channels) Deaf(read, now clock.Instant) bool {
	c := (*cs)[0]
	if len(*cs) > 1 {
		return now.Mono.Sub(read.Mono) >= clock.Recent(c.Set.T)
	}
	return !c.Link.IsReading() && c.Link.WaitsSince(read.Mono) <= now.Mono.Add(-clock.Stalled(c.Set.T))
}
