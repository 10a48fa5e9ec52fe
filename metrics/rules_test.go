package metrics

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// ruleFile is the part of rules.yaml that the tests read.
type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Alert       string
			Expr        string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

// ruleTests is the part of rules_test.yaml that the tests read.
type ruleTests struct {
	Tests []struct {
		Name     string
		Promtool []struct {
			Samples []struct{ Labels string } `yaml:"exp_samples"`
		} `yaml:"promql_expr_test"`
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(b, into))
}

// tool finds a program of Prometheus.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing. On Debian or Ubuntu, as root:\n"+
			"  apt-get install -y --no-install-recommends prometheus && systemctl disable --now prometheus\n"+
			"Elsewhere put prometheus and promtool, 2.42 or newer, into the path.", name)
	}
	return path
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), tool(t, "promtool"), args...).CombinedOutput()
	require.NoError(t, err, "promtool %s\n%s", strings.Join(args, " "), out)
}

// Prometheus accepts the rules, and each fires and is silent when it should.
func TestRules(t *testing.T) {
	promtool(t, "check", "rules", "rules.yaml")
	promtool(t, "test", "rules", "rules_test.yaml")
}

// Each alert has a test in which it fires. In the first test every metric that an alert looks at
// changes, and no alert fires.
func TestEachRuleIsTested(t *testing.T) {
	var rules ruleFile
	readYAML(t, "rules.yaml", &rules)
	var tests ruleTests
	readYAML(t, "rules_test.yaml", &tests)
	fires := ""
	for _, c := range tests.Tests[1:] {
		for _, q := range c.Promtool {
			for _, s := range q.Samples {
				fires += s.Labels + "\n"
			}
		}
	}
	require.Empty(t, tests.Tests[0].Promtool[0].Samples)
	quiet, err := os.ReadFile("rules_test.yaml")
	require.NoError(t, err)
	silent, _, _ := strings.Cut(string(quiet), tests.Tests[1].Name)
	for _, r := range rules.Groups[0].Rules {
		require.Contains(t, fires, `alertname="`+r.Alert+`"`)
		require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
		for _, name := range []string{"summary", "description", "runbook_url"} {
			require.NotEmpty(t, r.Annotations[name], "%s of %s", name, r.Alert)
		}
		used := metricName.FindAllString(r.Expr, -1)
		require.NotEmpty(t, used)
		for _, m := range used {
			require.Contains(t, silent, m, "%s is silent for want of %s", r.Alert, m)
		}
	}
}

// Rules, dashboard and documents name only metrics that exist.
func TestNamesOfMetrics(t *testing.T) {
	for _, file := range []string{"rules.yaml", "rules_test.yaml", "dashboard.json", "../docs/operations.md", "../docs/runbook.md", "../docs/metrics.md"} {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range metricName.FindAllString(string(b), -1) {
			require.True(t, slices.ContainsFunc(catalog, func(m metric) bool {
				return name == m.name || m.timing != nil && slices.Contains([]string{"_bucket", "_sum", "_count"}, strings.TrimPrefix(name, m.name))
			}), "%s: %s", file, name)
		}
	}
}
