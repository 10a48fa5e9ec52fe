package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/bench/measure"
	"github.com/goneli/neli/bench/steady"
	"github.com/goneli/neli/bench/trial"
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

// Aims compares what was measured of this library with what was aimed at. For crashes a
// round trip is the median of those that were measured just before the hand-overs. Each
// hand-over is beside three in a row: medians are compared, and maxima.
func (r *Results) Aims() []Aim {
	var aims []Aim
	for _, s := range r.Systems {
		if s.Family != "neli" || s.Results == nil {
			continue
		}
		trip := measure.SpreadOf(s.Trips).Median
		name := s.Bed + ", " + s.Setting
		if killed := measure.SpreadOf(s.Killed); s.Timeout > 0 && killed.N > 0 {
			silence := measure.Milliseconds(measure.Silence(time.Duration(s.Timeout * float64(time.Millisecond))))
			aims = append(aims,
				aim("crash, median: "+name, s.Timeout, killed.Median, killed.N),
				aim("crash, maximum: "+name, 1.15*silence+3*trip, killed.Max, killed.N))
		}
		if gap, three := measure.SpreadOf(s.Gap), measure.SpreadOf(measure.InRow(trial.TripsBefore, s.Trips)); three.N > 0 {
			aims = append(aims, aim("hand-over, median: "+name, three.Median, gap.Median, gap.N),
				aim("hand-over, maximum: "+name, three.Max, gap.Max, gap.N))
		}
		if s.Joins > 0 {
			aims = append(aims, none("joins that disturb: "+name, s.Disturbed, fmt.Sprintf("%d of %d", s.Disturbed, s.Joins)))
		}
		if s.Terms > 0 {
			aims = append(aims, none("two leaders at once: "+name, s.WokenLed+s.Overlaps,
				fmt.Sprintf("%d of %d woken; %d otherwise, in %d terms", s.WokenLed, s.Woken, s.Overlaps, s.Terms)))
		}
	}
	for _, o := range append(append([]steady.Outcome{}, r.Quiet...), r.Rolling...) {
		aims = append(aims, none(fmt.Sprintf("terms lost: %s, T = %s, %.0f min", o.What, o.T, o.Minutes), o.Lost, fmt.Sprint(o.Lost)))
	}
	return aims
}

func aim(what string, bound, measured float64, n int) Aim {
	return Aim{What: what, Bound: "≤ " + figure(bound) + " ms", Measured: fmt.Sprintf("%s ms (n = %d)", figure(measured), n), Met: measured <= bound}
}

func none(what string, count int, measured string) Aim {
	return Aim{What: what, Bound: "none", Measured: measured, Met: count == 0}
}

// slow counts the systems in which the slowest of all hand-overs, or of as many times
// two round trips, took longer than three median round trips.
type slow struct{ Systems, HandOvers, Trips int }

func (r *Results) slow() (n slow) {
	for _, s := range r.Systems {
		if s.Results == nil || len(s.Trips) == 0 {
			continue
		}
		n.Systems++
		bound := 3 * measure.SpreadOf(s.Trips).Median
		if measure.SpreadOf(s.Gap).Max > bound {
			n.HandOvers++
		}
		var two []float64
		for row := range slices.Chunk(s.Trips, trial.TripsBefore) {
			two = append(two, row[0]+row[1])
		}
		if measure.SpreadOf(two).Max > bound {
			n.Trips++
		}
	}
	return n
}
