package report

import (
	"fmt"
	"time"

	"github.com/goneli/neli/bench/measure"
	"github.com/goneli/neli/bench/steady"
)

// Aim is something that was to be reached, and whether it was.
type Aim struct {
	What, Bound, Measured string
	Met                   bool
}

func verdict(met bool) string {
	if met {
		return "yes"
	}
	return "**no**"
}

// Verdict is yes or no.
func (a Aim) Verdict() string { return verdict(a.Met) }

// Aims compares what was measured of this library with what was aimed at. A round
// trip is the median of those that were measured in the same run.
func (r *Results) Aims() []Aim {
	var aims []Aim
	for _, s := range r.Systems {
		if s.Family != "neli" || s.Results == nil {
			continue
		}
		trip := measure.SpreadOf(r.trips(s.Bed)).Median
		name := s.Bed + ", " + s.Setting
		if killed := measure.SpreadOf(s.Killed); s.Timeout > 0 && killed.N > 0 {
			silence := measure.Milliseconds(measure.Silence(time.Duration(s.Timeout * float64(time.Millisecond))))
			aims = append(aims,
				aim("crash, median: "+name, s.Timeout, killed.Median, killed.N),
				aim("crash, maximum: "+name, 1.15*silence+3*trip, killed.Max, killed.N))
		}
		if gap := measure.SpreadOf(s.Gap); gap.N > 0 && trip > 0 {
			aims = append(aims, aim("hand-over, median: "+name, 3*trip, gap.Median, gap.N),
				aim("hand-over, maximum: "+name, 3*trip, gap.Max, gap.N))
		}
		if s.Joins > 0 {
			aims = append(aims, Aim{"joins that disturb: " + name, "none", fmt.Sprintf("%d of %d", s.Disturbed, s.Joins), s.Disturbed == 0})
		}
		if s.Terms > 0 {
			aims = append(aims, Aim{"two leaders at once: " + name, "never",
				fmt.Sprintf("%d of %d woken; %d otherwise, in %d terms", s.WokenLed, s.Woken, s.Overlaps, s.Terms), s.WokenLed+s.Overlaps == 0})
		}
	}
	for _, o := range append(append([]steady.Outcome{}, r.Quiet...), r.Rolling...) {
		aims = append(aims, Aim{fmt.Sprintf("terms lost: %s, T = %s, %.0f min", o.What, o.T, o.Minutes), "none", fmt.Sprint(o.Lost), o.Lost == 0})
	}
	return aims
}

func aim(what string, bound, measured float64, n int) Aim {
	return Aim{what, "≤ " + figure(bound) + " ms", fmt.Sprintf("%s ms (n = %d)", figure(measured), n), measured <= bound}
}
