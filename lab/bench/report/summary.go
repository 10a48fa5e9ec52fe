package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goneli/neli/lab/bench/crowd"
	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/bench/steady"
)

// shown are the rows of the summary: each system by default, and at its fastest.
var shown = []struct{ called, family, bed, setting string }{
	{"neli on Kafka, T = 5 s (default)", "neli", "3 brokers", "Open, T = 5s"},
	{"neli on Kafka, T = 5 s, sentinel", "neli", "3 brokers", "Open, T = 5s, sentinel"},
	{"neli on Kafka, T = 300 ms", "neli", "3 brokers", "Open, T = 300ms"},
	{"neli on Kafka, franz-go, T = 5 s", "neli", "3 brokers", "franz, Open, T = 5s"},
	{"neli on peers, T = 1 s", "neli", "peers", "T = 1s"},
	{"neli on peers, T = 100 ms", "neli", "peers", "T = 100ms"},
	{"etcd, TTL 60 s (default)", "etcd", "3 members", "default: TTL 60 s"},
	{"etcd, TTL 1 s", "etcd", "3 members, heartbeat 50 ms", "fastest: TTL 1 s"},
	{"hashicorp/raft, timeouts 1 s (default)", "raft", "3 nodes", "default: timeouts 1 s, lease 500 ms"},
	{"hashicorp/raft, timeouts 50 ms", "raft", "3 nodes", "fastest: timeouts 50 ms"},
	{"redsync, expiry 8 s (default)", "redsync", "1 server", "default: expiry 8 s, tries each 50–250 ms"},
	{"redsync, expiry 500 ms", "redsync", "1 server", "fast: expiry 500 ms, tries each 50 ms"},
}

// row is a system of the summary; its usage is that of an idle group of three.
type row struct {
	Called string
	System
	Messages, Members, Servers string
	Double                     string // whether a woken leader still said that it leads
}

func (r *Results) shown() []row {
	var rows []row
	for _, s := range shown {
		i := slices.IndexFunc(r.Systems, func(o System) bool {
			return o.Family == s.family && o.Bed == s.bed && o.Setting == s.setting && o.Results != nil
		})
		if i < 0 {
			continue
		}
		found := row{Called: s.called, System: r.Systems[i], Messages: "–", Members: "–", Servers: "–", Double: fmt.Sprintf("%d of %d", r.Systems[i].WokenLed, r.Systems[i].Woken)}
		if k := slices.IndexFunc(found.Idle, func(u idle.Usage) bool { return u.Members == peers.Size }); k >= 0 {
			u := found.Idle[k]
			found.Messages, found.Members, found.Servers = figure(u.Messages), fmt.Sprintf("%.1f", 100*u.MembersCPU), fmt.Sprintf("%.1f", 100*u.ServersCPU)
			if found.Inside {
				found.Servers = "–"
			}
		}
		if found.Woken == 0 {
			found.Double = "–"
		}
		rows = append(rows, found)
	}
	return rows
}

// overlaps counts instants with two leaders, except those of woken leaders; "" if there were none.
func (r *Results) overlaps() string {
	var all []string
	for _, s := range r.Systems {
		if s.Results != nil && s.Overlaps > 0 {
			all = append(all, fmt.Sprintf("%s, %s (%d)", s.Family, s.Setting, s.Overlaps))
		}
	}
	return strings.Join(all, "; ")
}

// trials names the numbers of trials that a cell of the summary has.
func (r *Results) trials() string {
	counts := map[int]bool{}
	for _, s := range r.shown() {
		counts[len(s.Killed)] = true
	}
	var text []string
	for _, n := range slices.Sorted(maps.Keys(counts)) {
		text = append(text, fmt.Sprint(n))
	}
	return strings.Join(text, " or ")
}

// cell is a spread without its number of measurements.
func cell(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return span(measure.SpreadOf(values))
}

// restarted are the medians after a clean stop, on Kafka.
func (r *Results) restarted() string {
	return between(r.medians(func(s System) []float64 { return s.Restarted }), "ms")
}

// check is what one check costs a leader of this library.
func (r *Results) check() string {
	return between(r.medians(func(s System) []float64 {
		if s.Leading == nil {
			return nil
		}
		return []float64{s.Leading.Nanos}
	}), "ns")
}

// medians are those of this library on Kafka.
func (r *Results) medians(of func(System) []float64) (all []float64) {
	for _, s := range r.Systems {
		if s.Family == "neli" && !s.Inside && s.Results != nil && len(of(s)) > 0 {
			all = append(all, measure.SpreadOf(of(s)).Median)
		}
	}
	return all
}

func between(values []float64, unit string) string {
	if len(values) == 0 {
		return "an unknown time"
	}
	return fmt.Sprintf("%s to %s %s", figure(slices.Min(values)), figure(slices.Max(values)), unit)
}

// struck is the result of one group while brokers failed.
type struck struct {
	Group, T          string
	Faults, Lost, Met int
	Longest           float64
}

func (r *Results) struck() []struck {
	var all []struck
	for _, f := range r.Faults {
		i := slices.IndexFunc(all, func(s struck) bool { return s.Group == f.Group && s.T == f.T })
		if i < 0 {
			i = len(all)
			all = append(all, struck{Group: f.Group, T: f.T})
		}
		s := &all[i]
		s.Faults, s.Lost, s.Met = s.Faults+len(f.Longest), s.Lost+f.Lost, s.Met+f.Met
		s.Longest = max(s.Longest, slices.Max(f.Longest))
	}
	return all
}

// steady counts the terms that the long runs have lost.
func (r *Results) steady() string {
	all := slices.Concat(r.Quiet, r.Rolling)
	if all == nil {
		return ""
	}
	lost := func(all []steady.Outcome) (n int) {
		for _, o := range all {
			n += o.Lost
		}
		return n
	}
	return fmt.Sprintf("%d terms lost in quiet runs, %d in rolling restarts", lost(r.Quiet), lost(r.Rolling))
}

// crowded is a size of the summary. Times with the default client and with the other one, if that
// was measured, share a cell.
type crowded struct{ What, Led, Even, Again, Joined string }

func (r *Results) crowded() []crowded {
	var all []crowded
	for _, o := range r.Scale {
		if o.One { // nothing to share out
			continue
		}
		what := fmt.Sprintf("%d in %d, %d", o.Members(), o.Processes, o.Roles)
		i := slices.IndexFunc(all, func(c crowded) bool { return c.What == what })
		if i < 0 {
			i = len(all)
			all = append(all, crowded{What: what})
		}
		all[i].add(o)
	}
	return all
}

func (c *crowded) add(o crowd.Outcome) {
	for cell, phase := range map[*string]string{&c.Led: crowd.LedFirst, &c.Even: crowd.SharedFirst,
		&c.Again: fmt.Sprintf(crowd.LedAgain, o.Each), &c.Joined: fmt.Sprintf(crowd.SharedLast, o.Each)} {
		took := "–"
		if i := slices.IndexFunc(o.Phases, func(p crowd.Phase) bool { return p.What == phase }); i >= 0 {
			took = fmt.Sprintf("%.1f", o.Phases[i].Seconds)
			if o.Phases[i].Unmet {
				took = "> " + took
			}
		}
		if *cell != "" {
			took = *cell + "/" + took
		}
		*cell = took
	}
}

// Miss is a kind of target of which some are missed.
type Miss struct {
	Kind, Why  string
	Missed, Of int
	Worst      Aim
	Measured   string // the worst measurement, without its n
}

// why explains the misses of each kind of target.
var why = map[string]string{
	"steps of members":                           "they wait for one of two cores",
	"memory of a member, live on the heap":       "bookkeeping of each role",
	"crash":                                      "one slow round trip",
	"crash with its log":                         "the target allows 0.3 ms beyond the lease",
	"the only member is started again":           "a busy machine",
	"one question, leader":                       "a busy machine",
	"hand-over":                                  "the target leaves out the processes' work",
	"very first start, since metadata":           "connections are opened first",
	"a joiner knows all holders, since metadata": "connections are opened first",
	"idle group: messages":                       "by less than a tenth",
	"CPU":                                        "the default client's threads",
	crowds:                                       "all share two cores",
}

// safe reports whether no two members of this library ever led at once.
func (r *Results) safe() bool {
	return !slices.ContainsFunc(r.Aims(), func(a Aim) bool { return !a.Met && strings.HasPrefix(a.What, "two leaders at once") })
}

// crowds are the targets of how soon many members have all roles led, and shared out.
const crowds = "many members: start, crash, join, restart"

// kind groups targets by what they measure.
func kind(what string) string {
	head, _, _ := strings.Cut(what, ": ")
	switch {
	case strings.HasPrefix(head, "idle group") && strings.HasSuffix(what, ", messages"):
		return "idle group: messages"
	case strings.HasPrefix(head, "idle group"), strings.HasPrefix(head, "CPU of"):
		return "CPU"
	case strings.HasPrefix(head, "all have been led"), strings.HasPrefix(head, "shared out"), strings.HasSuffix(head, "after a clean restart"):
		return crowds
	}
	head = strings.TrimSuffix(head, ", beside raft's fastest")
	return strings.TrimSuffix(strings.TrimSuffix(head, ", median"), ", maximum")
}

// Misses returns the kinds of target of which some were missed, in the order of the targets.
func (r *Results) Misses() []Miss {
	var all []Miss
	for _, a := range r.Aims() {
		k := kind(a.What)
		i := slices.IndexFunc(all, func(m Miss) bool { return m.Kind == k })
		if i < 0 {
			i = len(all)
			all = append(all, Miss{Kind: k, Why: cmp.Or(why[k], "–")})
		}
		all[i].Of++
		if !a.Met {
			all[i].Missed++
			if all[i].Missed == 1 || a.Excess > all[i].Worst.Excess {
				all[i].Worst = a
				all[i].Measured, _, _ = strings.Cut(a.Measured, " (n = ")
				all[i].Measured, _, _ = strings.Cut(all[i].Measured, "; ")
			}
		}
	}
	return slices.DeleteFunc(all, func(m Miss) bool { return m.Missed == 0 })
}
