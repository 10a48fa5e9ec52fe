package report

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
)

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

// figure is a number of milliseconds, with as many digits as it deserves.
func figure(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.0f", ms)
	}
}
