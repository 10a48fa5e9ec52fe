package report

import (
	_ "embed"
	"io"
	"text/template"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/chaos/oracle"
)

// PageName is the name of the page about fail-over.
const PageName = "failover.md"

//go:embed failover.md.tmpl
var failOvers string

// Page writes the page about fail-over, with a table for each run.
func Page(w io.Writer, runs []Subject) error {
	page, err := template.New(PageName).Funcs(template.FuncMap{"spread": spread}).Parse(failOvers)
	if err != nil {
		return err
	}
	return page.Execute(w, runs)
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
