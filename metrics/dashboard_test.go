package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var metricName = regexp.MustCompile(`\bneli_[a-z_]+\b`)

// dashboard is the part of dashboard.json that the tests read.
type dashboard struct {
	UID        string
	Title      string
	Editable   bool
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type, Label string
			Definition        string
			Refresh           int
		}
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ Type, UID string }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct {
		RefID, Expr string
		Datasource  struct{ Type, UID string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	b, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &d))
	return d
}

// expr fills in the variables of a target's expression.
func expr(target, instance, interval string) string {
	return strings.NewReplacer("$group", ".+", "$instance", instance, "$__rate_interval", interval).Replace(target)
}

// Prometheus understands each expression of the dashboard.
func TestDashboardExpressions(t *testing.T) {
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []rule
	for _, p := range readDashboard(t).Panels {
		for _, q := range p.Targets {
			rules = append(rules, rule{fmt.Sprintf("panel_%d_%s", p.ID, q.RefID), expr(q.Expr, ".+", "1m")})
		}
	}
	require.Greater(t, len(rules), 20)
	b, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	require.NoError(t, os.WriteFile(file, b, 0o600))
	promtool(t, "check", "rules", file)
}

// A crash that costs five seconds shows as five seconds, although the crashed process's counters
// start again at zero. Meanwhile the silence rises.
func TestDashboardShowsWhatACrashCost(t *testing.T) {
	tests := "rule_files: []\nevaluation_interval: 15s\ntests:\n- interval: 15s\n  input_series:\n"
	for name, values := range map[string]string{
		`neli_leaderless_seconds_total{group="g",instance="a"}`: "112x8 117.1x12",
		`neli_leaderless_seconds_total{group="g",instance="b"}`: "90x8 95x12",
		`neli_leaderless_seconds_total{group="g",instance="c"}`: "112x7 0x13",
		`neli_leader_silence_seconds{group="g",instance="a"}`:   "0x7 3.1 0x12",
		`neli_leader_silence_seconds{group="g",instance="b"}`:   "0x7 3 0x12",
	} {
		tests += fmt.Sprintf("  - series: '%s'\n    values: '%s'\n", name, values)
	}
	tests += "  promql_expr_test:\n"
	for _, p := range readDashboard(t).Panels {
		if p.Title != "Time without a leader" {
			continue
		}
		for at, want := range map[string][2]float64{"105s": {0, 0}, "120s": {0, 3.1}, "135s": {5.1, 0}, "180s": {5.1, 0}, "240s": {0, 0}} {
			for i, q := range p.Targets {
				tests += fmt.Sprintf("  - expr: '%s'\n    eval_time: %s\n    exp_samples:\n    - labels: '{group=\"g\"}'\n      value: %v\n",
					"round("+expr(q.Expr, ".+", "1m")+", 0.01)", at, want[i])
			}
		}
	}
	file := filepath.Join(t.TempDir(), "crash.yaml")
	require.NoError(t, os.WriteFile(file, []byte(tests), 0o600))
	promtool(t, "test", "rules", file)
}

// While NeliNoLeader fires, the dashboard does not show zero vacant roles.
func TestDashboardCountsVacanciesLikeTheAlert(t *testing.T) {
	var rules ruleFile
	readYAML(t, "rules.yaml", &rules)
	alert := rules.Groups[0].Rules[0]
	require.Equal(t, "NeliNoLeader", alert.Alert)
	counted, _, found := strings.Cut(alert.Expr, "> 0")
	require.True(t, found)
	plain := func(expr string) string {
		expr = strings.NewReplacer(`{group=~"$group", instance=~"$instance"}`, "", `group=~"$group", instance=~"$instance", `, "").Replace(expr)
		return strings.Join(strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(expr)), " ")
	}
	for _, p := range readDashboard(t).Panels {
		if p.Title == "Roles without a leader" {
			require.Equal(t, plain(counted), plain(p.Targets[0].Expr))
			return
		}
	}
	require.Fail(t, "the dashboard does not count vacancies")
}

// The dashboard meets the rules of Grafana's dashboard linter: variables for whatever differs between
// installations, and panels that say what they show, and in which unit.
func TestDashboardMeetsTheLintersRules(t *testing.T) {
	d := readDashboard(t)
	require.Equal(t, "neli-overview", d.UID)
	require.NotEmpty(t, d.Title)
	require.False(t, d.Editable)
	vars := map[string]string{}
	for _, v := range d.Templating.List {
		vars[v.Name] = v.Type
		require.NotEmpty(t, v.Label)
		if v.Type == "query" {
			require.Contains(t, v.Definition, "label_values(")
			require.Equal(t, 2, v.Refresh, "%s: when the time range changes", v.Name)
		}
	}
	require.Equal(t, map[string]string{"datasource": "datasource", "group": "query", "instance": "query"}, vars)
	ids, shown := map[int]bool{}, ""
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "panel id %d is there twice", p.ID)
		ids[p.ID] = true
		require.NotEmpty(t, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Less(t, at[0], 24)
				require.Empty(t, taken[at], "%s lies over another panel", p.Title)
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		refs := map[string]bool{}
		for _, q := range p.Targets {
			require.False(t, refs[q.RefID], "%s: two queries have the refId %s", p.Title, q.RefID)
			refs[q.RefID] = true
			require.Equal(t, "${datasource}", q.Datasource.UID, p.Title)
			shown += q.Expr + "\n"
			for _, selector := range regexp.MustCompile(`neli_[a-z_]+(\{[^}]*\})?`).FindAllStringSubmatch(q.Expr, -1) {
				require.Contains(t, selector[1], `group=~"$group", instance=~"$instance"`, "%s: %s", p.Title, selector[0])
			}
			for _, window := range regexp.MustCompile(`\[[^]]*\]`).FindAllString(q.Expr, -1) {
				require.Equal(t, "[$__rate_interval]", window, p.Title)
			}
			for _, name := range metricName.FindAllString(q.Expr, -1) {
				if strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_bucket") {
					require.Regexp(t, `(rate|increase)\(`+name+`\{|`+name+`\{[^}]*\} offset`, q.Expr, "a counter by itself says nothing")
				}
			}
		}
	}
	for _, m := range catalog {
		if m.name != "neli_state" && m.name != "neli_role_token" { // for alerts, and for ad-hoc queries
			require.Contains(t, shown, m.name, "the dashboard does not show it")
		}
	}
}
