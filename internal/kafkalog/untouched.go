package kafkalog

import (
	"maps"
	"slices"
	"time"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// untouched delays the Resets of logs that have never had a record, if others are in use: an
// empty log may belong to a partition that was just added. Existing members look for new
// partitions only every ten seconds. Until then they lead roles in other logs, which a newcomer
// would consider vacant here. So a newcomer begins with such a log only after all members have had
// that time and the topic has proved to be unchanged, or after a process has appended to the log,
// which shows that it knows the partition. The newcomer reads all other logs meanwhile.
//
// This is a second line of defence: partitions must not be added while members live (see
// ErrPartitionsChanged).
type untouched struct {
	jumps map[int]elector.Entry // by partition
	until time.Time             // a check of the topic that begins at or after this time releases them
}

// inUse is how many records show that a log is in use, and not new. If no log has so many, nothing is
// delayed.
const inUse = elector.History

func newUntouched(ends []kafka.OffsetRange) untouched {
	u := untouched{until: time.Now().Add(identityEvery)}
	used := slices.ContainsFunc(ends, func(e kafka.OffsetRange) bool { return e.End >= inUse })
	for p, e := range ends {
		if used && e.End == 0 {
			if u.jumps == nil {
				u.jumps = map[int]elector.Entry{}
			}
			u.jumps[p] = elector.Entry{Partition: p, Reset: true, Whole: true, Why: empty}
		}
	}
	return u
}

func (u *untouched) holds(p int) bool {
	_, ok := u.jumps[p]
	return ok
}

func (u *untouched) due(t *Topic) bool { return len(u.jumps) > 0 && t.sameSince(u.until) }

// release returns the delayed Reset of a log to which a process has appended.
func (u *untouched) release(p int) (elector.Entry, bool) {
	e, ok := u.jumps[p]
	delete(u.jumps, p)
	return e, ok
}

// releaseAll returns all delayed Resets, ascending.
func (u *untouched) releaseAll() []elector.Entry {
	out := make([]elector.Entry, 0, len(u.jumps))
	for _, p := range slices.Sorted(maps.Keys(u.jumps)) {
		out = append(out, u.jumps[p])
	}
	u.jumps = nil
	return out
}
