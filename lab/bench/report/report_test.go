package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/trial"
)

// fixed are invented results.
func fixed() *Results {
	return &Results{
		Runs: []Run{
			{ID: "1", Commit: "0000001", Date: "2026-01-01", Command: "make bench-scale"},
			{ID: "2", Commit: "0000002", Date: "2026-01-02", Command: "make bench-peers N=4", Took: "3m", Machine: "2 cores <&>", Versions: []string{"raft v1"}, N: 4, Few: 1, Window: "15s"},
		},
		Systems: []System{
			{Family: "neli", Bed: "1 broker", Setting: "Open, T = 300ms", Run: "2", Lease: 300, Idle: []idle.Usage{{Members: 3, MembersCPU: 0.01, Messages: 20, Bytes: 4200, Memory: 22e6}},
				Results: &trial.Results{
					Killed: []float64{280, 290, 301, 340}, Stopped: []float64{300}, First: []float64{620}, Asked: []float64{5, 6}, Gap: []float64{4, 8},
					Restarted: []float64{310}, Woken: 1, Double: []float64{0}, Terms: 9,
					Leading: &member.Check{Leads: true, Nanos: 61.2}}},
			{Family: "neli", Bed: "1 broker", Setting: "Open, T = 5s, 1000 roles", Run: "2", Lease: 5000, Idle: []idle.Usage{{Members: 3, MembersCPU: 0.013, Messages: 25}},
				Results: &trial.Results{Gap: []float64{9, 10, 90}}},
			{Family: "neli", Bed: "3 brokers", Setting: "Open, T = 300ms", Run: "2", Lease: 300, Idle: []idle.Usage{{Members: 30}, {Members: 3, MembersCPU: 0.0123, ServersCPU: 0.02, Messages: 20.4}},
				Results: &trial.Results{Killed: []float64{280, 290}, Gap: []float64{5}, Woken: 3, Overlaps: 1}},
			{Family: "neli", Bed: "1 broker", Setting: "Assigned", Run: "2", Lease: 6000, Results: &trial.Results{Killed: []float64{9000}}},
			{Family: "raft", Bed: "3 nodes", Setting: "default: timeouts 1 s, lease 500 ms", Run: "2", Lease: 1000,
				Results: &trial.Results{Killed: []float64{1500}, Woken: 2, WokenLed: 1, Double: []float64{0, 3.4}, Terms: 4,
					Failures: []string{"Close: too late"}}},
			{Family: "raft", Bed: "3 nodes", Setting: "single answers", Run: "2", Lease: 1000, Results: &trial.Results{Killed: []float64{1500}, Woken: 2, WokenLed: 2, Double: []float64{0, 0}}},
			{Family: "redsync", Bed: "1 server", Setting: "for its cost", Run: "2", Lease: 1000, Results: &trial.Results{}, Idle: []idle.Usage{{Members: 3}}},
		},
	}
}

// pagesOf returns all pages of the results, by name.
func pagesOf(t *testing.T, r *Results) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{PageName, MethodsName} {
		page, err := r.Page(name)
		require.NoError(t, err, name)
		assert.NotContains(t, page, "<no value>", name)
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "|") {
				assert.True(t, strings.HasSuffix(line, "|\n"), "%s: a row of a table is a line of its own: %q", name, line)
			}
		}
		all[name] = page
	}
	return all
}

func TestPages(t *testing.T) {
	pages := pagesOf(t, fixed())
	for name, lines := range map[string][]string{
		"README.md": {
			"- raft, 3 nodes, default: timeouts 1 s, lease 500 ms: Close: too late",
		},
		PageName: {
			"It has 2 cores <&>.\n",
			"of 1 or 2 trials (commit 0000002 of 2026-01-02).\n",
			"| neli on Kafka, T = 300 ms | 285 [280–290] | 5.0 [5.0–5.0] | – | 20 | 1.2 | 2.0 | 0 of 3 |\n",
			"| hashicorp/raft, timeouts 1 s (default) | 1500 [1500–1500] | – | – | – | – | – | 1 of 2 |\n",
			"Other overlaps: neli, Open, T = 300ms (1).",
		},
	} {
		for _, want := range lines {
			assert.Contains(t, pages[name], want, name)
		}
	}
}

// The summary names alternatives only where machines differ, and gives the runs of a day one date.
func TestSummaryGroupsMachinesAndCommits(t *testing.T) {
	r := fixed()
	r.Runs = append(r.Runs,
		Run{ID: "3", Commit: "0000003", Date: "2026-01-02", Machine: "2 cores, Linux 1, go1"},
		Run{ID: "4", Commit: "0000003", Date: "2026-01-03", Machine: "2 cores, Linux 2, go1"})
	r.Runs[1].Machine = "2 cores, Linux 1, go1"
	r.Systems[0].Run, r.Systems[1].Run = "3", "4"
	assert.Equal(t, "2 cores, Linux 1 or Linux 2, go1", r.machines())
	assert.Equal(t, "commits 0000002, 0000003 of 2026-01-02, 0000003 of 2026-01-03", r.commits())
}

// Pages can be written without results, and then mention nothing that was not measured.
func TestPagesWithoutResults(t *testing.T) {
	pages := pagesOf(t, &Results{})
	assert.NotContains(t, pages[PageName], "neli on Kafka")
}

func TestSummaryIsShort(t *testing.T) {
	kept, err := Load("../results/results.json")
	require.NoError(t, err)
	page, err := kept.Page(PageName)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(strings.Fields(page)), 1200)
	assert.Len(t, kept.shown(), len(shown), "each row of the summary has been measured")
}

// The pages in the repository match its results.
func TestPagesMatchTheResults(t *testing.T) {
	kept, err := Load("../results/results.json")
	require.NoError(t, err)
	for name, page := range pagesOf(t, kept) {
		dir := "../results"
		if name == PageName {
			dir = "../../../docs"
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, page, string(text), "make generate writes it anew")
	}
}

func TestTakeReplacesOldMeasurements(t *testing.T) {
	r := fixed()
	r.Take(Run{ID: "3", Commit: "0000003"}, &Results{
		Systems: []System{{Family: "neli", Bed: "1 broker", Setting: "Assigned", Lease: 1}, {Family: "neli", Bed: "1 broker", Setting: "new"}},
	})
	var runs []string
	for _, s := range r.Systems {
		runs = append(runs, s.Run)
	}
	assert.Equal(t, []string{"2", "2", "2", "3", "3", "2", "2", "2"}, runs, "a new row comes after similar ones")
	assert.Equal(t, "new", r.Systems[4].Setting)
	assert.Equal(t, []string{"2", "3"}, r.runs())
	assert.Equal(t, []string{"2", "3"}, []string{r.Runs[0].ID, r.Runs[1].ID}, "the first run has no results, and is dropped")
}

func TestResultsAreKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "results.json")
	none, err := Load(path)
	require.NoError(t, err, "none yet")
	assert.Equal(t, &Results{}, none)

	require.NoError(t, fixed().Save(path))
	kept, err := Load(path)
	require.NoError(t, err)
	require.NoError(t, kept.Write(dir, dir))
	want, err := fixed().Page(PageName)
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(dir, PageName))
	require.NoError(t, err)
	assert.Equal(t, want, string(page), "saving and loading keeps everything")
}
