package oracle

import (
	"slices"
	"time"

	"github.com/goneli/neli/lab/chaos/history"
)

// FailOver is how long roles of exclusive mode had no leader after faults of one kind. Recovered judges each of these gaps.
type FailOver struct {
	Kind    string
	Lengths []time.Duration // for each fault: the longest gap of a role whose leader it struck
	Bound   time.Duration
}

// FailOvers returns the kinds of faults that began in a calm cluster, in the order in which they first occurred.
func FailOvers(r history.Record, gaps []Gap, b Recovery) (rows []FailOver) {
	for _, f := range r.Faults {
		if !f.Calm {
			continue // it has no bound
		}
		i := slices.IndexFunc(rows, func(row FailOver) bool { return row.Kind == f.Kind })
		if i < 0 {
			i, rows = len(rows), append(rows, FailOver{Kind: f.Kind})
		}
		var longest time.Duration
		for _, g := range gaps {
			if g.Mode == history.Exclusive && g.Step == f.Step && !g.Aside {
				longest = max(longest, g.Length())
			}
		}
		rows[i].Lengths = append(rows[i].Lengths, longest)
		rows[i].Bound = max(rows[i].Bound, b.bound(f))
	}
	return rows
}

// bound returns how long a role may have no leader. If nothing is promised while the fault lasts, that includes the fault.
func (b Recovery) bound(f history.Fault) time.Duration {
	whole, after := b.bounds(history.Exclusive, f)
	if whole == unbounded {
		return f.Span.Length() + after
	}
	return whole
}
