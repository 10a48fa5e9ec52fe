package oracle

import (
	"fmt"
	"time"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/witness"
)

// enough is the share of a life that must be sampled. The rest allows for starts of brokers, which take both cores for a moment.
// A stall of the whole machine, which may be a large share of a short life, is no fault of the sampler either.
const (
	enough = 0.9
	stall  = 2 * time.Second
)

// The two ends of a life are not sampled: a process has to start and to reach the cluster, and to
// end. If a life is shorter than brief, its sampled share proves nothing.
const (
	starting = 15 * time.Second
	ending   = time.Second
	brief    = 2 * time.Second
)

// unsampled lists the roles, of either mode, that were not sampled enough in a life, from its first sample to its end, without
// suspensions. It says how much of the missing time other lives were sampled: if hardly any, the whole machine stood still.
func unsampled(l history.Life, lives []history.Life, roles int) []string {
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
			awake, missing := sampled(l, runs)
			all := witness.Total(awake)
			if share := 1 - float64(witness.Total(missing))/float64(max(1, all)); all > brief && witness.Total(missing) > stall && share < enough {
				faults = append(faults, fmt.Sprintf("%s: only %.0f %% of its life was sampled; of the missing %v others were sampled for %v, in %v",
					what, 100*share, witness.Total(missing), witness.Total(witness.Intersect(missing, sampledOthers(l, lives))), missing))
			}
		}
	}
	return faults
}

// sampled returns the times at which a life should have been sampled, and those at which it was not, for one role.
func sampled(l history.Life, runs witness.Runs) (awake, missing []witness.Span) {
	end := l.Died - ending
	if l.Died == witness.Never { // it was alive when the record was taken
		end = runs[len(runs)-1].Last.Before
	}
	return runs.Sampled(end, l.Stops)
}

// sampledOthers returns the times at which any life but l was sampled, for any role.
func sampledOthers(l history.Life, lives []history.Life) []witness.Span {
	var spans []witness.Span
	for _, o := range lives {
		if o.Member != l.Member {
			spans = append(spans, o.Runs.Proven()...)
		}
	}
	return witness.Union(spans)
}
