package report

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/goneli/neli/bench/idle"
	"github.com/goneli/neli/bench/measure"
	"github.com/goneli/neli/bench/member"
	"github.com/goneli/neli/bench/trial"
)

//go:embed page.md.tmpl
var pageText string

// page is what the template is given.
type page struct {
	*Results
	Failures []string
	Missed   int
	Slow     slow
}

// Page is Markdown.
func (r *Results) Page() (string, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"spread": spread, "ratio": ratio, "ms": figure, "check": check, "usage": usage, "join": strings.Join, "woken": woken, "trips": trips, "inRow": func(v []float64) []float64 { return measure.InRow(trial.TripsBefore, v) },
	}).Parse(pageText)
	if err != nil {
		return "", err
	}
	p := page{Results: r, Slow: r.slow()}
	for _, s := range r.Systems {
		if s.Results == nil {
			continue
		}
		for _, f := range s.Results.Failures {
			p.Failures = append(p.Failures, fmt.Sprintf("%s, %s, %s: %s", s.Family, s.Bed, s.Setting, f))
		}
	}
	for _, a := range r.Aims() {
		if !a.Met {
			p.Missed++
		}
	}
	var text strings.Builder
	err = t.Execute(&text, p)
	return text.String(), err
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

// spread is "median [least–most], n", as kafka people and benchstat write it.
func spread(values []float64) string {
	s := measure.SpreadOf(values)
	if s.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%s [%s–%s], %d", figure(s.Median), figure(s.Min), figure(s.Max), s.N)
}

// ratio is median and maximum in parts of the lease.
func ratio(values []float64, lease float64) string {
	s := measure.SpreadOf(values)
	if s.N == 0 || lease == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f, %.2f", s.Median/lease, s.Max/lease)
}

func check(c *member.Check) string {
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
	// One answer has no length; the next one, a sampling interval later, was no.
	return fmt.Sprintf("**%d of %d**, up to %s ms", led, of, figure(max(1, slices.Max(double))))
}

func trips(values []float64) string {
	s := measure.SpreadOf(values)
	two := measure.SpreadOf(measure.InRow(2, values))
	return fmt.Sprintf("median %.2f ms, 99th percentile %s ms, n = %d; two in a row: median %s ms, 95th percentile %s ms, maximum %s ms",
		s.Median, figure(s.P99), s.N, figure(two.Median), figure(two.P95), figure(two.Max))
}

func usage(u idle.Usage) string {
	rate := func(bytes float64) string { return fmt.Sprintf("%.1f", bytes/1000) }
	return fmt.Sprintf("%d | %.1f | %s | %.2f | %.2f | %.1f | %s", u.Members, u.Messages, rate(u.Bytes), 100*u.MembersCPU, 100*u.ServersCPU,
		u.InnerMessages, rate(u.InnerBytes))
}
