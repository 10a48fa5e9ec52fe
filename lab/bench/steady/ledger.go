package steady

import (
	"slices"
	"time"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/trial"
)

// Fault is the effect of one kind of broker fault, repeated several times, on one group of three.
// Longest and Vacant have a figure for each repetition.
type Fault struct {
	Run     string    // the run's key in the results, which have its time, machine and command
	What    string    // signal and broker
	Away    string    // for how long the broker was gone; 0s: it was restarted at once
	Group   string    // what was elected on
	T       string    // of the group
	Longest []float64 // ms without a leader at a stretch
	Vacant  []float64 // ms without a leader altogether
	Lost    int       // terms, of all repetitions together
	Double  float64   // ms with two leaders
	Met     int       // pairs of members that led at one instant
}

// ledger is a row for each kind of fault and group, in the order in which they came up.
type ledger []Fault

// add adds the effect of one fault on one group.
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
