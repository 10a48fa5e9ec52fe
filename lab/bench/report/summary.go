package report

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/peers"
)

// shown are the rows of the summary, and what it calls them.
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
	Double                     string // how many of the woken leaders still said that they lead
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

func span(s measure.Spread) string {
	return fmt.Sprintf("%s [%s–%s]", figure(s.Median), figure(s.Min), figure(s.Max))
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

// medians returns the medians of this library on Kafka.
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

//go:embed pages/*.tmpl
var pages embed.FS

// page is what a template is given.
type page struct {
	*Results
	Failures []string
}

// Page is Markdown: [PageName], or [MethodsName].
func (r *Results) Page(name string) (string, error) {
	t, err := template.New(name+".tmpl").Funcs(r.functions()).ParseFS(pages, "pages/"+name+".tmpl")
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = t.Execute(&text, page{r, r.failures()})
	return text.String(), err
}

// functions are what templates may call.
func (r *Results) functions() template.FuncMap {
	return template.FuncMap{
		"cell":  cell,
		"shown": r.shown, "trials": r.trials, "overlaps": r.overlaps, "machine": r.machines, "runs": r.commits, "restarted": r.restarted, "check": r.check,
	}
}

func (r *Results) failures() (all []string) {
	for _, s := range r.Systems {
		if s.Results == nil {
			continue
		}
		for _, f := range s.Results.Failures {
			all = append(all, fmt.Sprintf("%s, %s, %s: %s", s.Family, s.Bed, s.Setting, f))
		}
	}
	return all
}

func (r *Results) run(id string) Run {
	i := slices.IndexFunc(r.Runs, func(run Run) bool { return run.ID == id })
	if i < 0 {
		return Run{Commit: "unknown"}
	}
	return r.Runs[i]
}

// machines describes the machines on which the systems were measured. Where they differ, it lists
// the possibilities, joined by "or".
func (r *Results) machines() string {
	var all [][]string // by part of a machine's description: its different values
	for _, id := range r.runs() {
		for i, part := range strings.Split(r.run(id).Machine, ", ") {
			if i == len(all) {
				all = append(all, nil)
			}
			if part != "" && !slices.Contains(all[i], part) {
				all[i] = append(all[i], part)
			}
		}
	}
	var parts []string
	for _, part := range all {
		if len(part) > 0 {
			parts = append(parts, strings.Join(part, " or "))
		}
	}
	return strings.Join(parts, ", ")
}

// commits names the commits of the figures, and when they were measured.
func (r *Results) commits() string {
	var all, of []string // of the same day
	n := 0
	runs := r.runs()
	for i, id := range runs {
		run := r.run(id)
		if !slices.Contains(of, run.Commit) {
			of, n = append(of, run.Commit), n+1
		}
		if i+1 == len(runs) || r.run(runs[i+1]).Date != run.Date {
			all, of = append(all, strings.Join(of, ", ")+" of "+run.Date), nil
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "commit " + all[0]
	}
	return "commits " + strings.Join(all, ", ")
}

// figure writes a number, with one decimal if it is below 10.
func figure(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.0f", ms)
	}
}
