package report

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/goneli/neli/bench/idle"
	"github.com/goneli/neli/bench/measure"
	"github.com/goneli/neli/bench/member"
	"github.com/goneli/neli/bench/trial"
)

//go:embed pages/*.tmpl
var pages embed.FS

// page is what a template is given.
type page struct {
	*Results
	Failures []string
	Missed   int
}

// Tables are the names of the pages with all rows.
var Tables = []string{"README.md", "systems.md", "clients.md", "aims.md", "brokers.md", "scale.md", "sentinel.md"}

// Page is Markdown: [PageName], or one of [Tables].
func (r *Results) Page(name string) (string, error) {
	t, err := template.New(name+".tmpl").Funcs(r.functions()).ParseFS(pages, "pages/"+name+".tmpl")
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = t.Execute(&text, page{r, r.failures(), r.missed()})
	return text.String(), err
}

// functions are what templates may call.
func (r *Results) functions() template.FuncMap {
	return template.FuncMap{
		// Cells.
		"spread": spread, "cell": cell, "ratio": ratio, "ms": figure, "question": question, "usage": usage, "join": strings.Join, "woken": woken, "trips": trips,
		"inRow": func(v []float64) []float64 { return measure.InRow(trial.TripsBefore, v) },
		"run":   r.letter, "measured": r.measured, "cores": cores,
		"mb": func(bytes float64) string { return figure(bytes / 1e6) }, "memory": memory,
		"seconds": func(ms float64) string { return fmt.Sprintf("%.1f s", ms/1000) },
		"tried": func(t *trial.Results) bool {
			return t != nil && len(t.First)+len(t.Killed)+len(t.Gap)+len(t.Failures)+t.Joins > 0
		},
		// The summary.
		"shown": r.shown, "trials": r.trials, "overlaps": r.overlaps, "machine": r.machines, "runs": r.commits, "restarted": r.restarted, "check": r.check,
		"faults": r.struck, "steady": r.steady, "scale": r.crowded, "misses": r.Misses, "missed": r.missed, "safe": r.safe, "aims": r.Aims,
		"beside": r.beside, "watchings": r.watchings, "percent": func(cores float64) string { return fmt.Sprintf("%.2f", 100*cores) },
		"contests": r.Contests, "score": r.score,
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

func (r *Results) missed() (n int) {
	for _, a := range r.Aims() {
		if !a.Met {
			n++
		}
	}
	return n
}

func (r *Results) run(id string) Run {
	i := slices.IndexFunc(r.Runs, func(run Run) bool { return run.ID == id })
	if i < 0 {
		return Run{Commit: "unknown"}
	}
	return r.Runs[i]
}

// letter is what the page calls a run: a, b, …
func (r *Results) letter(id string) string {
	i := slices.IndexFunc(r.Runs, func(run Run) bool { return run.ID == id })
	if i < 0 {
		return "–"
	}
	return string(rune('a' + i%26))
}

// measured names the commits of a block's figures, and when they were measured.
func (r *Results) measured(block string) string {
	var all []string
	for _, id := range r.runsOf(block) {
		run := r.run(id)
		all = append(all, fmt.Sprintf("%s: commit %s, %s", r.letter(id), run.Commit, run.Date))
	}
	return "Measured in run " + strings.Join(all, "; ") + "."
}

// commits is measured for the summary, which has no letters.
func (r *Results) commits(block string) string {
	var all, of []string // of the same day
	n := 0
	runs := r.runsOf(block)
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

// cores are percents of one core of each process.
func cores(each []float64) string {
	if len(each) == 0 {
		return "–"
	}
	text := make([]string, len(each))
	for i, c := range each {
		text[i] = fmt.Sprintf("%.2f", 100*c)
	}
	return strings.Join(text, ", ")
}

// figure is a number of milliseconds, with as many digits as it deserves.
func figure(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.0f", ms)
	}
}

// spread is "median [least–most], n".
func spread(values []float64) string {
	s := measure.SpreadOf(values)
	if s.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%s [%s–%s], %d", figure(s.Median), figure(s.Min), figure(s.Max), s.N)
}

// ratio is median and maximum, as fractions of the lease.
func ratio(values []float64, lease float64) string {
	s := measure.SpreadOf(values)
	if s.N == 0 || lease == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f, %.2f", s.Median/lease, s.Max/lease)
}

func question(c *member.Check) string {
	if c == nil {
		return "–"
	}
	return fmt.Sprintf("%s ns, %d allocs", figure(c.Nanos), c.Allocs)
}

func woken(led, of int, double []float64) string {
	if of == 0 {
		return "–"
	}
	if led == 0 {
		return fmt.Sprintf("0 of %d", of)
	}
	length := "< one sampling interval" // a single answer has no duration
	if most := slices.Max(double); most > 0 {
		length = fmt.Sprintf("up to %s ms", figure(most))
	}
	return fmt.Sprintf("**%d of %d**, %s", led, of, length)
}

func trips(values []float64) string {
	s := measure.SpreadOf(values)
	two := measure.SpreadOf(measure.InRow(2, values))
	return fmt.Sprintf("median %.2f ms, 99th percentile %s ms, n = %d; two in a row: median %s ms, 95th percentile %s ms, maximum %s ms",
		s.Median, figure(s.P99), s.N, figure(two.Median), figure(two.P95), figure(two.Max))
}

// memory is in MB. Old runs did not measure it.
func memory(u idle.Usage) string {
	if u.Memory == 0 {
		return "–"
	}
	return figure(u.Memory / 1e6)
}

func usage(u idle.Usage) string {
	rate := func(bytes float64) string { return fmt.Sprintf("%.1f", bytes/1000) }
	return fmt.Sprintf("%d | %.1f | %s | %.2f | %.2f | %.1f | %s", u.Members, u.Messages, rate(u.Bytes), 100*u.MembersCPU, 100*u.ServersCPU,
		u.InnerMessages, rate(u.InnerBytes))
}
