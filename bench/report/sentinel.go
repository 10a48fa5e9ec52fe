package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goneli/neli/bench/measure"
)

// The targets with a sentinel: median milliseconds from SIGKILL of the leader until its successor
// leads.
const (
	sentinelMs     = 20 // on one broker
	sentinelMsMore = 35 // on three
	sentinelMsMany = 100
	sentinelMsLone = 150
)

// sentinelAims are the targets of groups with a sentinel on Kafka.
func (s System) sentinelAims() []Aim {
	if !s.Sentinel || s.Inside || s.Results == nil {
		return nil
	}
	bound := float64(sentinelMs)
	switch {
	case s.Roles > 1:
		bound = sentinelMsMany
	case s.Bed != "1 broker":
		bound = sentinelMsMore
	}
	var aims []Aim
	median := func(what string, bound float64, values []float64) {
		if v := measure.SpreadOf(values); v.N > 0 {
			aims = append(aims, aim(what+": "+s.name(), bound, v.Median, v.N))
		}
	}
	median("crash beside a sentinel, median", bound, s.Killed)
	median("the only member is started again, median", sentinelMsLone, s.Lone)
	median("crash of both, median", s.Lease, s.Both)
	return append(aims, s.countAims()...)
}

// beside is a group with a sentinel, and the same without.
type beside struct {
	System
	Without    []float64 // SIGKILL of the leader
	WithoutRun string
}

// beside are the groups with a sentinel.
func (r *Results) beside() []beside {
	var all []beside
	for _, s := range r.Systems {
		if !s.Sentinel || s.Results == nil {
			continue
		}
		b := beside{System: s}
		if i := slices.IndexFunc(r.Systems, func(o System) bool {
			return o.Results != nil && o.Family == s.Family && o.Bed == s.Bed && o.Setting+", sentinel" == s.Setting
		}); i >= 0 {
			b.Without, b.WithoutRun = r.Systems[i].Killed, r.Systems[i].Run
		}
		all = append(all, b)
	}
	return all
}

// watchings are all measurements of a sentinel's cost.
func (r *Results) watchings() []System {
	return slices.DeleteFunc(slices.Clone(r.Systems), func(s System) bool { return len(s.Watching) == 0 })
}

// Several is the number of roles in a row.
func (b beside) Several() string { return fmt.Sprint(cmp.Or(b.Roles, 1)) }
