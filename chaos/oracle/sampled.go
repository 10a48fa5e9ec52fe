package oracle

import (
	"fmt"
	"time"

	"github.com/goneli/neli/chaos/history"
	"github.com/goneli/neli/testkit/witness"
)

// enough is the share of a life that must be sampled. Starts of brokers, which take both cores for a moment, explain the rest. A
// stall of the machine says nothing of the sampler either, and may be a large share of a short life.
const (
	enough = 0.9
	stall  = 2 * time.Second
)

// Two ends of a life are not sampled: a process has to start and to reach the
// cluster, and to end. A life that is shorter than brief tells nothing of its share.
const (
	starting = 15 * time.Second
	ending   = time.Second
	brief    = 2 * time.Second
)

// unsampled lists the roles, of either mode, that were not sampled enough, in the life from the first sample to its end without
// suspensions.
func unsampled(l history.Life, roles int) []string {
	var faults []string
	for mode := range history.Modes {
		for role := range roles {
			what := fmt.Sprintf("%s, %s role %d", l.Member, history.ModeName(mode), role)
			runs := l.Runs.Of(mode, role)
			if len(runs) == 0 {
				if min(l.Died, witness.Never/2)-l.Born > starting {
					faults = append(faults, what+": never sampled")
				}
				continue
			}
			if late := runs[0].First.Before - l.Born; late > starting {
				faults = append(faults, fmt.Sprintf("%s: not sampled for %v after its birth", what, late.Round(time.Millisecond)))
			}
			seen, all := sampled(l, runs)
			if share := float64(seen) / float64(max(1, all)); all > brief && all-seen > stall && share < enough {
				faults = append(faults, fmt.Sprintf("%s: only %.0f %% of its life was sampled", what, 100*share))
			}
		}
	}
	return faults
}

// sampled returns how much of a life the samples of one role cover, and how long it is.
func sampled(l history.Life, runs witness.Runs) (seen, all time.Duration) {
	end := l.Died - ending
	if l.Died == witness.Never { // it lived when the record was taken
		end = runs[len(runs)-1].Last.Before
	}
	awake := witness.Without(witness.Span{From: runs[0].First.After, To: end}, l.Stops)
	var proven []witness.Span
	for _, r := range runs {
		proven = append(proven, r.Proven())
	}
	return total(witness.Intersect(witness.Union(proven), awake)), total(awake)
}

func total(spans []witness.Span) time.Duration {
	var sum time.Duration
	for _, s := range spans {
		sum += s.Length()
	}
	return sum
}
