package metrics

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/goneli/neli"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

// docs/metrics.md equals what the template makes of the collector's metrics. go generate writes it.
func TestDocument(t *testing.T) {
	page, err := template.ParseFiles("document.tmpl")
	require.NoError(t, err)
	var rows []row
	for _, m := range catalog {
		rows = append(rows, row{m.name, kindOf(m), labelsOf(m), m.help, m.exclusive, m.detail})
	}
	var reasons []string
	for why := neli.ReasonUnassigned; why <= neli.ReasonFatal; why++ {
		reasons = append(reasons, text(why))
	}
	var b bytes.Buffer
	require.NoError(t, page.ExecuteTemplate(&b, "document.tmpl", map[string]any{"Metrics": rows, "MaxRoles": MaxRoles, "Reasons": reasons}))
	const file = "../docs/metrics.md"
	if *update {
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
	}
	is, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(is), "go generate writes it anew")
}

// row is a metric's row of the document.
type row struct {
	Name, Kind, Labels, Help string
	Exclusive, Detail        bool
}

func kindOf(m metric) string {
	switch {
	case m.timing != nil:
		return "histogram"
	case m.kind == prometheus.CounterValue:
		return "counter"
	}
	return "gauge"
}

func labelsOf(m metric) string {
	if len(m.labels) == 0 {
		return ""
	}
	return ", `" + strings.Join(m.labels, "`, `") + "`"
}

// The runbook has a section for each alert, named after it, and no other sections of that kind.
func TestRunbookOfAlerts(t *testing.T) {
	var rules ruleFile
	readYAML(t, "rules.yaml", &rules)
	b, err := os.ReadFile("../docs/runbook.md")
	require.NoError(t, err)
	want, got := map[string]bool{}, map[string]bool{}
	for _, r := range rules.Groups[0].Rules {
		want[r.Alert] = true
		require.Equal(t, "https://github.com/goneli/neli/blob/main/docs/runbook.md#"+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
	}
	for _, m := range regexp.MustCompile(`(?m)^#+ (Neli[A-Z]\w*)$`).FindAllStringSubmatch(string(b), -1) {
		got[m[1]] = true
	}
	require.Equal(t, want, got)
}
