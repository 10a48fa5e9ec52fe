package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/lab/bench/measure"
)

// Targets for systems in which this library's members are also the log hosts, so that a leader's
// log dies with the leader.
const (
	insideCrashTrips = 3 // on top of T′
	insideHandTrips  = 4
	insideMessages   = 40.0 // of an idle group of three, each second, at T = 1 s
	insidePercent    = 1.0  // of a core, all three together
	// Many roles that one member leads, compared with one role.
	manyMessages = 1.1
	manyCPU      = 1.25
)

// insideAims are the targets of a system without a broker. Some compare it with other systems.
func (r *Results) insideAims(s System) []Aim {
	if s.Family != "neli" || !s.Inside || s.Sentinel || s.Results == nil {
		return nil
	}
	return slices.Concat(s.insideTimes(), r.besideRaft(s), s.countAims(), s.checkAim(), s.insideCosts(), r.besideOneRole(s))
}

// insideTimes are targets in round trips to a log host in another process.
func (s System) insideTimes() []Aim {
	var aims []Aim
	trip := measure.SpreadOf(s.Trips).Median
	if trip == 0 {
		return nil
	}
	within := func(what string, bound, measured float64, n int) {
		if n > 0 {
			aims = append(aims, aim(what+": "+s.name(), bound, measured, n))
		}
	}
	killed, gap := measure.SpreadOf(s.Killed), measure.SpreadOf(s.Gap)
	crash := silence(time.Duration(s.Timeout*float64(time.Millisecond))) + insideCrashTrips*trip
	within("crash with its log, median", crash, killed.Median, killed.N)
	within("crash with its log, maximum", crash, killed.Max, killed.N)
	within("hand-over, median", insideHandTrips*trip, gap.Median, gap.N)
	return aims
}

// besideRaft compares the shortest T with raft's shortest timeouts.
func (r *Results) besideRaft(s System) []Aim {
	i := slices.IndexFunc(r.Systems, func(o System) bool {
		return o.Family == "raft" && strings.HasPrefix(o.Setting, "fastest") && o.Results != nil && len(o.Killed) > 0
	})
	if s.Timeout != 100 || i < 0 || len(s.Killed) == 0 {
		return nil
	}
	ours, raft := measure.SpreadOf(s.Killed), measure.SpreadOf(r.Systems[i].Killed)
	ahead := func(what string, bound, measured float64) Aim {
		return Aim{What: what + ": " + s.name(), Bound: "< " + figure(bound) + " ms", Measured: fmt.Sprintf("%s ms (n = %d)", figure(measured), ours.N),
			Met: measured < bound, Excess: measured / bound}
	}
	return []Aim{ahead("crash, median, beside raft's fastest", raft.Median, ours.Median), ahead("crash, maximum, beside raft's fastest", raft.Max, ours.Max)}
}

// insideCosts are targets for an idle group of three.
func (s System) insideCosts() []Aim {
	var aims []Aim
	for _, u := range s.Idle {
		if s.Timeout == 1000 && s.Roles <= 1 && u.Members == 3 {
			what := "idle group of 3: " + s.name()
			aims = append(aims, rate(what+", messages", insideMessages, u.Messages), percent(what+", CPU of all members", insidePercent, u.MembersCPU))
		}
	}
	return aims
}

// besideOneRole compares many roles with one.
func (r *Results) besideOneRole(s System) []Aim {
	i := slices.IndexFunc(r.Systems, func(o System) bool {
		return o.Family == s.Family && o.Inside && o.Roles <= 1 && o.Timeout == s.Timeout && len(o.Idle) > 0
	})
	if s.Roles <= 1 || i < 0 || len(s.Idle) == 0 {
		return nil
	}
	one, many := r.Systems[i].Idle[0], s.Idle[0]
	what := fmt.Sprintf("idle group of %d, beside one role: %s", many.Members, s.name())
	bound := manyCPU * one.MembersCPU
	return []Aim{rate(what+", messages", manyMessages*one.Messages, many.Messages),
		{What: what + ", CPU of all members", Bound: fmt.Sprintf("≤ %.2f %% of a core", 100*bound), Measured: fmt.Sprintf("%.2f %%", 100*many.MembersCPU),
			Met: many.MembersCPU <= bound, Excess: many.MembersCPU / bound}}
}

func rate(what string, bound, measured float64) Aim {
	return Aim{What: what, Bound: "≤ " + strings.TrimSuffix(fmt.Sprintf("%.1f", bound), ".0") + "/s", Measured: fmt.Sprintf("%.1f/s", measured), Met: measured <= bound, Excess: measured / bound}
}
