package kafkalog

import (
	"maps"
	"slices"
	"time"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// untouched holds back the jumps to logs to which nothing was ever appended, beside
// logs that have been in use: they may belong to partitions that were just added.
// Members that were there before look for that every ten seconds only, and until
// then have roles elsewhere, which a newcomer would take for vacant here. So a
// newcomer does not begin with such a log before everybody has had that time, and
// the topic has turned out to be the same since; or before somebody has appended to
// it, who knows of it. All other logs it reads meanwhile.
//
// This is a second line of defence: adding partitions while members live is against
// the rules (see ErrPartitionsChanged).
type untouched struct {
	jumps map[int]elector.Entry // by partition
	until time.Time             // a check of the topic that began now or later sets them free
}

// inUse is how many records a log must have had for its group to be older than a
// first start is: with that all logs are new, and nothing is held back.
const inUse = elector.History

func newUntouched(ends []kafka.OffsetRange) untouched {
	u := untouched{until: time.Now().Add(identityEvery)}
	used := slices.ContainsFunc(ends, func(e kafka.OffsetRange) bool { return e.End >= inUse })
	for p, e := range ends {
		if used && e.End == 0 {
			if u.jumps == nil {
				u.jumps = map[int]elector.Entry{}
			}
			u.jumps[p] = elector.Entry{Partition: p, Reset: true, Whole: true}
		}
	}
	return u
}

func (u *untouched) holds(p int) bool {
	_, ok := u.jumps[p]
	return ok
}

func (u *untouched) due(t *Topic) bool { return len(u.jumps) > 0 && t.sameSince(u.until) }

// release returns the jump to a log that somebody has appended to, if it was held
// back.
func (u *untouched) release(p int) (elector.Entry, bool) {
	e, ok := u.jumps[p]
	delete(u.jumps, p)
	return e, ok
}

// releaseAll returns what was held back, in order.
func (u *untouched) releaseAll() []elector.Entry {
	out := make([]elector.Entry, 0, len(u.jumps))
	for _, p := range slices.Sorted(maps.Keys(u.jumps)) {
		out = append(out, u.jumps[p])
	}
	u.jumps = nil
	return out
}
