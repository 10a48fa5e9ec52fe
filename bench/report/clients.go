package report

import (
	"fmt"
	"slices"

	"github.com/goneli/neli/bench/clients"
	"github.com/goneli/neli/bench/crowd"
	"github.com/goneli/neli/bench/measure"
)

// Contest compares one measurement with the default Kafka client and the same with the other
// client, of one run.
type Contest struct {
	What, Bed, Setting string
	Default, Other     string
	Ratio              float64 // of medians, other to default: below 1 the other one is better
	Outcome            Outcome
	Run                string
}

// Outcome says which client is better, beyond noise.
type Outcome string

// Outcomes. Times are alike if each one's median is within the other's range; single
// figures if they differ by a tenth at most.
const (
	Better Outcome = "better"
	Alike  Outcome = "alike"
	Worse  Outcome = "worse"
)

// otherClient is the beginning of settings with the other client.
const otherClient = clients.Franz + ", "

// Contests compares the clients, row by row.
func (r *Results) Contests() []Contest {
	var all []Contest
	for _, s := range r.Systems {
		i := slices.IndexFunc(r.Systems, func(o System) bool {
			return o.Family == s.Family && o.Bed == s.Bed && o.Setting == otherClient+s.Setting && o.Run == s.Run
		})
		if i < 0 || s.Results == nil || r.Systems[i].Results == nil {
			continue
		}
		o := r.Systems[i]
		add := func(c Contest, ok bool) {
			if ok {
				c.Bed, c.Setting, c.Run = s.Bed, s.Setting, s.Run
				all = append(all, c)
			}
		}
		add(times("first leader", s.First, o.First))
		add(times("first leader after a clean stop", s.Restarted, o.Restarted))
		add(times("fail-over after SIGKILL", s.Killed, o.Killed))
		add(times("fail-over after SIGSTOP", s.Stopped, o.Stopped))
		add(times("hand-over", s.Gap, o.Gap))
		add(times("a joiner knows all holders", s.Learnt, o.Learnt))
		for k, u := range s.Idle {
			if k >= len(o.Idle) || o.Idle[k].Members != u.Members {
				continue
			}
			v, of := o.Idle[k], fmt.Sprintf("idle group of %d: ", u.Members)
			add(single(of+"messages/s", u.Messages, v.Messages, 1))
			add(single(of+"members' CPU %", u.MembersCPU, v.MembersCPU, 100))
		}
	}
	return append(all, r.crowds()...)
}

// crowds compares the results of many members.
func (r *Results) crowds() []Contest {
	var all []Contest
	for _, s := range r.Scale {
		other := s.Size
		other.Client = clients.Franz
		i := slices.IndexFunc(r.Scale, func(o crowd.Outcome) bool { return o.Size == other && o.Run == s.Run })
		if i < 0 || s.Client != "" {
			continue
		}
		o := r.Scale[i]
		add := func(c Contest, ok bool) {
			if ok {
				c.Bed, c.Setting, c.Run = "1 broker", s.String(), o.Run
				all = append(all, c)
			}
		}
		add(single("members' CPU %", s.Quiet.MembersCPU, o.Quiet.MembersCPU, 100))
		add(single("broker's CPU %", s.Quiet.ServersCPU, o.Quiet.ServersCPU, 100))
		add(single("messages/s", s.Quiet.Messages, o.Quiet.Messages, 1))
		add(single("memory of a member, MB", s.Resident, o.Resident, 1e-6))
	}
	return all
}

// score counts outcomes, in words.
func (r *Results) score() string {
	n := map[Outcome]int{}
	for _, c := range r.Contests() {
		n[c.Outcome]++
	}
	return fmt.Sprintf("franz-go is better in %d rows, alike in %d, worse in %d", n[Better], n[Alike], n[Worse])
}

// times compares two samples.
func times(what string, a, b []float64) (Contest, bool) {
	x, y := measure.SpreadOf(a), measure.SpreadOf(b)
	if x.N == 0 || y.N == 0 || x.Median == 0 {
		return Contest{}, false
	}
	c := Contest{What: what + ", ms", Default: spread(a), Other: spread(b), Ratio: y.Median / x.Median, Outcome: Worse}
	switch {
	case x.Min <= y.Median && y.Median <= x.Max && y.Min <= x.Median && x.Median <= y.Max:
		c.Outcome = Alike
	case y.Median < x.Median:
		c.Outcome = Better
	}
	return c, true
}

// single compares two figures, each multiplied by a factor for readable units.
func single(what string, a, b, factor float64) (Contest, bool) {
	if a == 0 {
		return Contest{}, false
	}
	c := Contest{What: what, Default: fmt.Sprintf("%.2f", a*factor), Other: fmt.Sprintf("%.2f", b*factor), Ratio: b / a, Outcome: Worse}
	switch {
	case b >= 0.9*a && b <= 1.1*a:
		c.Outcome = Alike
	case b < a:
		c.Outcome = Better
	}
	return c, true
}
