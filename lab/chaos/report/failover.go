package report

import (
	_ "embed"
	"fmt"
	"io"
	"text/template"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/chaos/oracle"
)

// PageName is the name of the page about fail-over.
const PageName = "failover.md"

//go:embed failover.md.tmpl
var failOvers string

// Page writes the page about fail-over. Its table has a row for each kind of fault, with the times of each run.
func Page(w io.Writer, runs []Subject) error {
	rows := map[string][]string{}
	for _, r := range runs {
		for _, o := range r.Verdict.FailOvers {
			s := spread(o)
			rows[o.Kind] = append(rows[o.Kind], fmt.Sprintf("%d | %.2f | %.2f | %.1f", s.N, s.Median, s.Max, o.Bound.Seconds()))
		}
	}
	page, err := template.New(PageName).Parse(failOvers)
	if err != nil {
		return err
	}
	return page.Execute(w, map[string]any{"Runs": runs, "Rows": rows})
}

// spread returns the spread of a kind's gaps, in seconds.
func spread(o oracle.FailOver) measure.Spread {
	var seconds []float64
	for _, l := range o.Lengths {
		seconds = append(seconds, l.Seconds())
	}
	return measure.SpreadOf(seconds)
}

// Setting returns the setting of that name, "" if there is none.
func (s Subject) Setting(name string) string {
	for _, pair := range s.Settings {
		if pair[0] == name {
			return pair[1]
		}
	}
	return ""
}
