package steady

import (
	"slices"
	"time"

	"github.com/goneli/neli/bench/measure"
	"github.com/goneli/neli/bench/trial"
)

// Fault is what one kind of fault of brokers, some times over, did to one group of three.
// The longest time and the sum have a figure for each time.
type Fault struct {
	Run     string    // when, on what, by which command: a key of the results
	What    string    // signal and broker
	Away    string    // for how long the broker was gone; 0s: it was restarted at once
	Group   string    // what was elected on
	T       string    // of the group
	Longest []float64 // ms without a leader at a stretch
	Vacant  []float64 // ms without a leader altogether
	Lost    int       // terms, of all times together
	Double  float64   // ms with two leaders
	Met     int       // pairs of members that led at one instant
}

// ledger is a row for each kind of fault and group, in the order in which they came up.
type ledger []Fault

// add takes what one fault did to one group.
func (l *ledger) add(k kind, part string, group string, t time.Duration, seen trial.Losses) {
	row := Fault{What: k.name + " of " + part, Away: k.away.String(), Group: group, T: t.String()}
	i := slices.IndexFunc(*l, func(f Fault) bool { return f.What == row.What && f.Group == row.Group && f.T == row.T })
	if i < 0 {
		i = len(*l)
		*l = append(*l, row)
	}
	f := &(*l)[i]
	f.Longest = append(f.Longest, measure.Milliseconds(seen.Longest))
	f.Vacant = append(f.Vacant, measure.Milliseconds(seen.Vacant))
	f.Lost += seen.Terms
	f.Double += measure.Milliseconds(seen.Double)
	f.Met += seen.Met
}
