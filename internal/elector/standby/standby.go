/*
Package standby says which member prepares a role in case its holder dies. All of it is preference.

Of the members that offer to do so, it is the first by a hash that serves nothing else. By the ranking of package
placement a member that joins would take more than its share of standbys, since roles move to it, too.
*/
package standby

import (
	"slices"

	"github.com/goneli/neli/internal/elector/roster"
)

const (
	// buckets limits the work after a change of the members. Roles beyond share their standbys with others.
	buckets = 1 << 12
	salt    = 0x5741524d << 16
)

// Table says which member stands by for which role.
type Table struct {
	who  []string
	rank [][2]int32 // by bucket: who comes first and second
}

// Update sets the members that stand by, ascending, and reports whether they have changed.
func (t *Table) Update(who []string) bool {
	if slices.Equal(who, t.who) {
		return false
	}
	t.who, t.rank = who, nil
	return true
}

// IsEmpty reports whether nobody stands by.
func (t *Table) IsEmpty() bool { return len(t.who) == 0 }

// Of returns the standby of a role with a holder; empty: there is none.
func (t *Table) Of(role int, holder string) string {
	if len(t.who) == 0 {
		return ""
	}
	if t.rank == nil {
		t.rank = make([][2]int32, buckets)
		for b := range t.rank {
			t.rank[b] = t.first(b)
		}
	}
	for _, i := range t.rank[role%buckets] {
		if i >= 0 && t.who[i] != holder {
			return t.who[i]
		}
	}
	return ""
}

// first returns who comes first and second on a bucket; −1: nobody.
func (t *Table) first(bucket int) (best [2]int32) {
	best = [2]int32{-1, -1}
	var scores [2]uint64
	for i, id := range t.who {
		switch score := roster.Hash(id, salt+uint64(bucket)); {
		case best[0] < 0 || score > scores[0]:
			best, scores = [2]int32{int32(i), best[0]}, [2]uint64{score, scores[0]}
		case best[1] < 0 || score > scores[1]:
			best[1], scores[1] = int32(i), score
		}
	}
	return best
}
