package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/lab/bench/crowd"
	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/bench/measure"
)

// Aim is a target, and whether it was met.
type Aim struct {
	What, Bound, Measured string
	Met                   bool
	Excess                float64 // measured over bound, where both are numbers
	Run                   string
}

// Aims compares the measurements of this library with the targets. A round trip is the median of
// those measured just before the hand-overs.
func (r *Results) Aims() []Aim {
	var aims []Aim
	add := func(run string, more ...Aim) {
		for _, a := range more {
			a.Run = run
			aims = append(aims, a)
		}
	}
	for _, s := range r.Systems {
		add(s.Run, s.aims()...)
		add(s.Run, s.sentinelAims()...)
		add(s.Run, r.insideAims(s)...)
	}
	for _, o := range slices.Concat(r.Quiet, r.Rolling) {
		add(o.Run, none(fmt.Sprintf("terms lost: %s, T = %s, %.0f min", o.What, o.T, o.Minutes), o.Lost, fmt.Sprint(o.Lost)))
	}
	aims = append(aims, r.faultAims()...)
	for _, o := range r.Scale {
		add(o.Run, scaleAims(o)...)
	}
	return aims
}

// The targets. Round trips are those to Kafka, measured just before.
const (
	handTrips     = 3 // of one role; median by median
	handTripsMany = 5 // of all roles of a group together
	learnTrips    = 10
	firstTrips    = 10  // on top of T′
	restartMs     = 300 // from the start of the process
	checkNanos    = 80
)

// aims are the targets of this library on Kafka.
func (s System) aims() []Aim {
	if s.Family != "neli" || s.Inside || s.Sentinel || s.Results == nil {
		return nil
	}
	if s.mixed() { // the other targets are for groups whose members are all near
		return s.countAims()
	}
	return slices.Concat(s.timeAims(), s.countAims(), s.costAims())
}

func (s System) name() string { return s.Bed + ", " + s.Setting }

// timeAims are targets for durations.
func (s System) timeAims() []Aim {
	var aims []Aim
	trip := measure.SpreadOf(s.Trips).Median
	wait := silence(time.Duration(s.Timeout * float64(time.Millisecond)))
	if killed := measure.SpreadOf(s.Killed); s.Timeout > 0 && killed.N > 0 {
		aims = append(aims, aim("crash, median: "+s.name(), s.Timeout, killed.Median, killed.N),
			aim("crash, maximum: "+s.name(), 1.15*wait+3*trip, killed.Max, killed.N))
	}
	median := func(what string, bound float64, values []float64) {
		if v := measure.SpreadOf(values); v.N > 0 && trip > 0 {
			aims = append(aims, aim(what+", median: "+s.name(), bound, v.Median, v.N))
		}
	}
	if s.Timeout > 0 {
		median("very first start, since metadata", wait+firstTrips*trip, s.FirstRead)
	}
	median("first leader after a clean stop", restartMs, s.Restarted)
	median("a joiner knows all holders, since metadata", learnTrips*trip, s.Learnt)
	hand := handTrips * trip
	if s.Roles > 1 {
		hand = handTripsMany * trip
	}
	median("hand-over", hand, s.Gap)
	return aims
}

// countAims are targets for events that must not happen.
func (s System) countAims() []Aim {
	var aims []Aim
	if s.Joins > 0 {
		aims = append(aims, none("joins that disturb: "+s.name(), s.Disturbed, fmt.Sprintf("%d of %d", s.Disturbed, s.Joins)))
	}
	if s.Terms > 0 {
		aims = append(aims, none("two leaders at once: "+s.name(), s.WokenLed+s.Overlaps,
			fmt.Sprintf("%d of %d woken; %d otherwise, in %d terms", s.WokenLed, s.Woken, s.Overlaps, s.Terms)))
	}
	return aims
}

// checkAim is the target for one check of leadership.
func (s System) checkAim() []Aim {
	c := s.Leading
	if c == nil {
		return nil
	}
	return []Aim{{What: "one question, leader: " + s.name(), Bound: fmt.Sprintf("≤ %d ns, 0 allocs", checkNanos), Measured: question(c),
		Met: c.Nanos <= checkNanos && c.Allocs == 0}}
}

// costAims are targets for one check, and for idle groups with Open nomination.
func (s System) costAims() []Aim {
	aims := s.checkAim()
	for _, u := range s.Idle {
		what := fmt.Sprintf("idle group of %d: %s", u.Members, s.name())
		switch {
		case s.Timeout == 5000 && u.Members == 3:
			aims = append(aims, Aim{What: what + ", messages", Bound: "≤ 25/s", Measured: fmt.Sprintf("%.1f/s", u.Messages), Met: u.Messages <= 25, Excess: u.Messages / 25},
				percent(what+", CPU of all members", 1.2, u.MembersCPU))
		case s.Timeout == 1000 && u.Members == 30:
			aims = append(aims, percent(what+", CPU of all members", 22, u.MembersCPU))
		}
	}
	return aims
}

// silence returns T′ in milliseconds.
func silence(t time.Duration) float64 { return measure.Milliseconds(measure.Silence(t)) }

// faultAims has one target for each group: there are never two leaders at once, whatever happens to
// brokers.
func (r *Results) faultAims() []Aim {
	var aims []Aim
	var met, faults []int
	for _, f := range r.Faults {
		what := fmt.Sprintf("two leaders at once while brokers fail: %s, T = %s", f.Group, f.T)
		i := slices.IndexFunc(aims, func(a Aim) bool { return a.What == what })
		if i < 0 {
			i = len(aims)
			aims, met, faults = append(aims, Aim{}), append(met, 0), append(faults, 0)
		}
		met[i], faults[i] = met[i]+f.Met, faults[i]+len(f.Longest)
		aims[i] = none(what, met[i], fmt.Sprintf("%d in %d faults", met[i], faults[i]))
		aims[i].Run = f.Run
	}
	return aims
}

// scaleAims are targets for crowds on one partition.
func scaleAims(o crowd.Outcome) []Aim {
	if o.Partitions > 1 || o.T > time.Minute {
		return nil
	}
	var aims []Aim
	wait := silence(o.T) / 1000
	within := func(p crowd.Phase, seconds, spread float64) {
		a := Aim{What: p.What + ": " + o.Size.String(), Bound: fmt.Sprintf("≤ %.1f s", seconds), Measured: fmt.Sprintf("%.2f s", p.Seconds), Excess: p.Seconds / seconds,
			Met: !p.Unmet && p.Seconds <= seconds}
		if spread > 0 {
			a.Bound += fmt.Sprintf(", max/mean ≤ %.1f", spread)
			a.Measured += fmt.Sprintf(", %.2f", p.Spread)
			a.Met = a.Met && p.Spread <= spread
		}
		aims = append(aims, a)
	}
	large, huge := o.Roles >= 100_000, o.Roles >= 1_000_000
	for _, p := range o.Phases {
		switch {
		case p.What == crowd.LedFirst && huge && o.Members() > 3:
			within(p, 10, 0)
		case p.What == crowd.LedFirst && huge:
			within(p, wait+2, 0)
		case p.What == crowd.FirstAnew:
			within(p, p.Started+1, 0)
		case p.What == crowd.LedAnew && huge && o.Members() > 3:
			within(p, p.Started+4, 0)
		case p.What == crowd.LedAnew:
			within(p, p.Started+2, 0)
		case p.What == crowd.LedFirst && large:
			within(p, max(o.Started+2, wait), 0)
		case p.What == crowd.LedFirst && !o.One:
			within(p, wait+2, 0)
		case p.What == fmt.Sprintf(crowd.LedAgain, o.Each) && large:
			within(p, wait+1, 1.2)
		case p.What == fmt.Sprintf(crowd.LedAgain, o.Each):
			within(p, wait+1, 0)
		case large && (p.What == crowd.SharedFirst || p.What == fmt.Sprintf(crowd.SharedLast, o.Each)):
			within(p, 30, crowd.Even)
		}
	}
	aims = append(aims, none("terms lost: "+o.Size.String(), o.Lost, fmt.Sprintf("%d; %d of them in %s of quiet", o.Lost, o.LostInQuiet, o.Window)))
	if c := o.Checks; c != nil {
		aims = append(aims, none("checks that were false within a term: "+o.Size.String(), int(c.False), fmt.Sprintf("%d of %d", c.False, c.Made)))
	}
	aims = append(aims, stepAims(o)...)
	heap := 12e6
	if huge {
		heap = 60e6
	}
	switch {
	case large:
		aims = append(aims, percent("CPU of all members and the broker: "+o.Size.String(), 60, o.Quiet.MembersCPU+o.Quiet.ServersCPU),
			Aim{What: "memory of a member, live on the heap: " + o.Size.String(), Bound: fmt.Sprintf("≤ %.0f MB", heap/1e6), Met: o.Heap <= heap, Excess: o.Heap / heap,
				Measured: figure(o.Heap/1e6) + " MB; " + figure(o.Resident/1e6) + " MB of its process are resident"})
	case o.One:
		aims = append(aims, holderAims(o.Size.String(), o.Quiet)...)
	}
	return aims
}

// stepAims are targets for how long members hold their locks.
func stepAims(o crowd.Outcome) []Aim {
	if o.Steps == nil {
		return nil
	}
	limit := o.T / 50
	measured := fmt.Sprintf("%d of %d longer", o.Steps.Over, o.Steps.Count)
	if longest := o.Steps.Longest(); o.Steps.Over > 0 && longest > 0 {
		measured += fmt.Sprintf(", all ≤ %v", longest)
	}
	return []Aim{{What: "steps of members: " + o.Size.String(), Bound: fmt.Sprintf("≤ %v", limit), Met: o.Steps.Over == 0, Measured: measured}}
}

// holderAims are targets for the member that leads everything, whose usage comes first, and for the
// others.
func holderAims(what string, u idle.Usage) []Aim {
	if len(u.MemberCPU) < 2 {
		return nil
	}
	return []Aim{percent("CPU of the holder: "+what, 0.5, u.MemberCPU[0]), percent("CPU of a follower: "+what, 0.5, slices.Max(u.MemberCPU[1:]))}
}

func percent(what string, bound, cores float64) Aim {
	return Aim{What: what, Bound: fmt.Sprintf("≤ %s %% of a core", strings.TrimSuffix(fmt.Sprintf("%.1f", bound), ".0")), Measured: fmt.Sprintf("%.2f %%", 100*cores), Met: 100*cores <= bound, Excess: 100 * cores / bound}
}

func aim(what string, bound, measured float64, n int) Aim {
	return Aim{What: what, Bound: "≤ " + figure(bound) + " ms", Measured: fmt.Sprintf("%s ms (n = %d)", figure(measured), n), Met: measured <= bound, Excess: measured / bound}
}

func none(what string, count int, measured string) Aim {
	return Aim{What: what, Bound: "none", Measured: measured, Met: count == 0}
}
