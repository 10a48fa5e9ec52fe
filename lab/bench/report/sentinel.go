package report

import "github.com/goneli/neli/lab/bench/measure"

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
