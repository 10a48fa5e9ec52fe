package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/bench/crowd"
	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/steady"
	"github.com/goneli/neli/lab/bench/trial"
)

// fixed are invented results.
func fixed() *Results {
	return &Results{
		Runs: []Run{
			{ID: "1", Commit: "0000001", Date: "2026-01-01", Command: "make bench-scale"},
			{ID: "2", Commit: "0000002", Date: "2026-01-02", Command: "make bench-peers N=4", Took: "3m", Machine: "2 cores <&>", Versions: []string{"raft v1"}, N: 4, Few: 1, Window: "15s"},
		},
		Beds: []Bed{{Family: "neli", Name: "1 broker", Run: "2", RoundTrips: []float64{1, 2, 3}, Alone: &idle.Usage{ServersCPU: 0.0266}}},
		Systems: []System{
			{Family: "neli", Bed: "1 broker", Setting: "Open, T = 300ms", Run: "2", Lease: 300, Timeout: 300, Idle: []idle.Usage{{Members: 3, MembersCPU: 0.01, Messages: 20, Bytes: 4200, Memory: 22e6}},
				Results: &trial.Results{
					Killed: []float64{280, 290, 301, 340}, Stopped: []float64{300}, First: []float64{620}, Asked: []float64{5, 6}, Gap: []float64{4, 8}, Trips: []float64{1, 1, 2, 2, 2, 3},
					FirstRead: []float64{322}, Learnt: []float64{19, 20, 60}, Restarted: []float64{310},
					Joins: 2, JoinGap: []float64{0, 0}, Woken: 1, Double: []float64{0}, Terms: 9,
					Leading: &member.Check{Leads: true, Nanos: 61.2}, Following: &member.Check{Nanos: 5}}},
			{Family: "neli", Bed: "1 broker", Setting: "Open, T = 5s, 1000 roles", Run: "2", Lease: 5000, Timeout: 5000, Roles: 1000, Idle: []idle.Usage{{Members: 3, MembersCPU: 0.013, Messages: 25}},
				Results: &trial.Results{Gap: []float64{9, 10, 90}, Trips: []float64{2, 2, 2}}},
			{Family: "neli", Bed: "3 brokers", Setting: "Open, T = 300ms", Run: "2", Lease: 300, Idle: []idle.Usage{{Members: 30}, {Members: 3, MembersCPU: 0.0123, ServersCPU: 0.02, Messages: 20.4}},
				Results: &trial.Results{Killed: []float64{280, 290}, Gap: []float64{5}, Woken: 3, Overlaps: 1}},
			{Family: "neli", Bed: "1 broker", Setting: "Assigned", Run: "2", Lease: 6000, Results: &trial.Results{Killed: []float64{9000}}},
			{Family: "raft", Bed: "3 nodes", Setting: "default: timeouts 1 s, lease 500 ms", Run: "2", Lease: 1000,
				Results: &trial.Results{Killed: []float64{1500}, Woken: 2, WokenLed: 1, Double: []float64{0, 3.4}, Joins: 2, Disturbed: 1, Terms: 4,
					Failures: []string{"join: too late"}}},
			{Family: "raft", Bed: "3 nodes", Setting: "single answers", Run: "2", Lease: 1000, Results: &trial.Results{Killed: []float64{1500}, Woken: 2, WokenLed: 2, Double: []float64{0, 0}}},
			{Family: "redsync", Bed: "1 server", Setting: "for its cost", Run: "2", Lease: 1000, Results: &trial.Results{}, Idle: []idle.Usage{{Members: 3}}},
		},
		Scale: []crowd.Outcome{
			{Size: crowd.Size{Processes: 8, Each: 2, Partitions: 100, Roles: 1000, T: 5 * time.Minute}, Run: "1", Window: "30s", Lost: 3,
				Phases: []crowd.Phase{{What: crowd.LedFirst, Seconds: 61.26, Spread: 1.5}}, Quiet: idle.Usage{Members: 16, MembersCPU: 0.5}},
			{Size: crowd.Size{Processes: 10, Each: 10, Partitions: 1, Roles: 100_000, T: 5 * time.Second}, Run: "2", Window: "5m0s", Lost: 1, LostInQuiet: 1,
				Started: 4.5, Resident: 13e6, Heap: 4e6, Quiet: idle.Usage{Members: 100, MembersCPU: 0.4, ServersCPU: 0.1}, Phases: []crowd.Phase{
					{What: crowd.LedFirst, Seconds: 6.4, Spread: 3, Least: 0.2}, {What: crowd.SharedFirst, Seconds: 30.5, Spread: 1.05, Least: 0.9},
					{What: "all have been led after 10 died", Seconds: 5.9, Spread: 1.25}, {What: "shared out after 10 joined", Seconds: 20, Spread: 1.1, Unmet: true}}},
			{Size: crowd.Size{Processes: 3, Each: 1, Partitions: 1, Roles: 1000, T: 5 * time.Second, One: true}, Run: "2", Started: 6,
				Quiet: idle.Usage{Members: 3, MemberCPU: []float64{0.004, 0.006, 0.001}}},
		},
		Quiet:   []steady.Outcome{{Run: "1", What: "quiet, brokers: 1", T: "300ms", Minutes: 30}},
		Rolling: []steady.Outcome{{Run: "1", What: "rolling restart", T: "2s", Lost: 1, Minutes: 5, Groups: 3, Restarts: 6, Vacant: 2040}},
		Faults: []steady.Fault{
			{Run: "2", What: "SIGKILL of a broker", Away: "15s", Group: "one replicated log", T: "500ms", Longest: []float64{9000, 9500.4, 11000}, Vacant: []float64{9000, 9500.4, 11200}, Lost: 4},
			{Run: "2", What: "SIGKILL of a broker", Away: "15s", Group: "`Logs: 3`", T: "500ms", Longest: []float64{0, 0, 120}, Vacant: []float64{0, 0, 120}, Lost: 1, Met: 1, Double: 2.5},
			{Run: "2", What: "rolling restart", Away: "0s", Group: "`Logs: 3`", T: "500ms", Longest: []float64{0, 0}, Vacant: []float64{0, 0}},
		},
	}
}

// pages are all that is written, by name.
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
			"- raft, 3 nodes, default: timeouts 1 s, lease 500 ms: join: too late",
		},
		PageName: {
			"It has 2 cores <&>.\n",
			"of 1 or 2 trials (commit 0000002 of 2026-01-02).\n",
			"| neli on Kafka, T = 300 ms | 285 [280–290] | 5.0 [5.0–5.0] | – | 20 | 1.2 | 2.0 | 0 of 3 |\n",
			"| hashicorp/raft, timeouts 1 s (default) | 1500 [1500–1500] | – | – | – | – | – | 1 of 2 |\n",
			"Other overlaps: neli, Open, T = 300ms (1).",
			"| one replicated log, T = 500ms | 3 | 4 | 11.0 s | 0 |\n| `Logs: 3`, T = 500ms | 5 | 1 | 0.1 s | 1 |\n",
			"0 terms lost in quiet runs, 1 in rolling restarts.",
			"| 100 in 10, 100000 | 6.4 | 30.5 | 5.9 | > 20.0 |\n",
			"| CPU | 2 of 4 | 0.60 % (≤ 0.5 % of a core) | the default client's threads",
			"| very first start, since metadata | 1 of 1 | 322 ms (≤ 321 ms) |",
			"**Two led at once.**",
		},
	} {
		for _, want := range lines {
			assert.Contains(t, pages[name], want, name)
		}
	}
}

// Machines that differ in one respect, and runs of one day, are described in few words.
func TestSummaryNamesMachinesAndCommitsOnce(t *testing.T) {
	r := fixed()
	r.Runs = append(r.Runs,
		Run{ID: "3", Commit: "0000003", Date: "2026-01-02", Machine: "2 cores, Linux 1, go1"},
		Run{ID: "4", Commit: "0000003", Date: "2026-01-03", Machine: "2 cores, Linux 2, go1"})
	r.Runs[1].Machine = "2 cores, Linux 1, go1"
	r.Systems[0].Run, r.Systems[1].Run = "3", "4"
	assert.Equal(t, "2 cores, Linux 1 or Linux 2, go1", r.machines())
	assert.Equal(t, "commits 0000002, 0000003 of 2026-01-02, 0000003 of 2026-01-03", r.commits("systems"))
}

// Pages can be written without results, and then mention nothing that was not measured.
func TestPagesWithoutResults(t *testing.T) {
	pages := pagesOf(t, &Results{})
	assert.NotContains(t, pages[PageName], "neli on Kafka")
	assert.NotContains(t, pages[PageName], "| elected on |")
}

// The summary is short, and explains every kind of missed target.
func TestSummaryIsShort(t *testing.T) {
	kept, err := Load("../results/results.json")
	require.NoError(t, err)
	page, err := kept.Page(PageName)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(strings.Fields(page)), 1200)
	assert.Len(t, kept.shown(), len(shown), "each row of the summary has been measured")
	for _, m := range kept.Misses() {
		assert.NotEqual(t, "–", m.Why, m.Kind)
	}
}

// The pages in the repository are those of the results in the repository.
func TestPagesAreThoseOfTheResults(t *testing.T) {
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

func TestAims(t *testing.T) {
	verdicts := map[string]Aim{}
	for _, a := range fixed().Aims() {
		a.Excess = 0
		verdicts[a.What] = a
	}
	const many, crowded, one = "1 broker, Open, T = 5s, 1000 roles", "100 members in 10 processes, partitions: 1, 100000 roles, T = 5s",
		"3 members in 3 processes, partitions: 1, 1000 roles, T = 5s, one leads all"
	for what, want := range map[string]Aim{
		"crash, median: 1 broker, Open, T = 300ms":                                      {Bound: "≤ 300 ms", Measured: "296 ms (n = 4)", Met: true, Run: "2"},
		"crash, maximum: 1 broker, Open, T = 300ms":                                     {Bound: "≤ 352 ms", Measured: "340 ms (n = 4)", Met: true, Run: "2"},
		"hand-over, median: 1 broker, Open, T = 300ms":                                  {Bound: "≤ 6.0 ms", Measured: "6.0 ms (n = 2)", Met: true, Run: "2"},
		"hand-over, median: " + many:                                                    {Bound: "≤ 10 ms", Measured: "10 ms (n = 3)", Met: true, Run: "2"},
		"very first start, since metadata, median: 1 broker, Open, T = 300ms":           {Bound: "≤ 321 ms", Measured: "322 ms (n = 1)", Run: "2"},
		"a joiner knows all holders, since metadata, median: 1 broker, Open, T = 300ms": {Bound: "≤ 20 ms", Measured: "20 ms (n = 3)", Met: true, Run: "2"},
		"first leader after a clean stop, median: 1 broker, Open, T = 300ms":            {Bound: "≤ 300 ms", Measured: "310 ms (n = 1)", Run: "2"},
		"one question, leader: 1 broker, Open, T = 300ms":                               {Bound: "≤ 80 ns, 0 allocs", Measured: "61 ns, 0 allocs", Met: true, Run: "2"},
		"idle group of 3: " + many + ", messages":                                       {Bound: "≤ 25/s", Measured: "25.0/s", Met: true, Run: "2"},
		"idle group of 3: " + many + ", CPU of all members":                             {Bound: "≤ 1.2 % of a core", Measured: "1.30 %", Run: "2"},
		"two leaders at once: 1 broker, Open, T = 300ms":                                {Bound: "none", Measured: "0 of 1 woken; 0 otherwise, in 9 terms", Met: true, Run: "2"},
		"terms lost: quiet, brokers: 1, T = 300ms, 30 min":                              {Bound: "none", Measured: "0", Met: true, Run: "1"},
		"terms lost: rolling restart, T = 2s, 5 min":                                    {Bound: "none", Measured: "1", Run: "1"},
		"two leaders at once while brokers fail: one replicated log, T = 500ms":         {Bound: "none", Measured: "0 in 3 faults", Met: true, Run: "2"},
		"two leaders at once while brokers fail: `Logs: 3`, T = 500ms":                  {Bound: "none", Measured: "1 in 5 faults", Run: "2"},
		"all have been led after the start: " + crowded:                                 {Bound: "≤ 6.5 s", Measured: "6.40 s", Met: true, Run: "2"},
		"shared out after the start: " + crowded:                                        {Bound: "≤ 30.0 s, max/mean ≤ 1.1", Measured: "30.50 s, 1.05", Run: "2"},
		"all have been led after 10 died: " + crowded:                                   {Bound: "≤ 6.0 s, max/mean ≤ 1.2", Measured: "5.90 s, 1.25", Run: "2"},
		"shared out after 10 joined: " + crowded:                                        {Bound: "≤ 30.0 s, max/mean ≤ 1.1", Measured: "20.00 s, 1.10", Run: "2"},
		"terms lost: " + crowded:                                                        {Bound: "none", Measured: "1; 1 of them in 5m0s of quiet", Run: "2"},
		"CPU of all members and the broker: " + crowded:                                 {Bound: "≤ 60 % of a core", Measured: "50.00 %", Met: true, Run: "2"},
		"memory of a member, live on the heap: " + crowded:                              {Bound: "≤ 12 MB", Measured: "4.0 MB; 13 MB of its process are resident", Met: true, Run: "2"},
		"CPU of the holder: " + one:                                                     {Bound: "≤ 0.5 % of a core", Measured: "0.40 %", Met: true, Run: "2"},
		"CPU of a follower: " + one:                                                     {Bound: "≤ 0.5 % of a core", Measured: "0.60 %", Run: "2"},
	} {
		want.What = what
		assert.Equal(t, want, verdicts[what])
	}
	for what := range verdicts {
		assert.NotContains(t, what, "1 broker, Assigned", "its time is the session's, not T")
		assert.NotContains(t, what, "partitions: 100", "targets are for one partition")
		assert.NotContains(t, what, "hand-over, maximum", "it is reported, but has no target")
	}
}

func TestTakeReplacesOldMeasurements(t *testing.T) {
	r := fixed()
	r.Take(Run{ID: "3", Commit: "0000003"}, &Results{
		Systems: []System{{Family: "neli", Bed: "1 broker", Setting: "Assigned", Lease: 1}, {Family: "neli", Bed: "1 broker", Setting: "new"}},
		Quiet:   []steady.Outcome{{What: "quiet"}},
		Faults:  []steady.Fault{{What: "SIGTERM"}},
		Scale:   []crowd.Outcome{{Size: r.Scale[0].Size}},
	})
	var runs []string
	for _, s := range r.Systems {
		runs = append(runs, s.Run)
	}
	assert.Equal(t, []string{"2", "2", "2", "3", "3", "2", "2", "2"}, runs, "a new row comes after similar ones")
	assert.Equal(t, "new", r.Systems[4].Setting)
	assert.Equal(t, []string{"3"}, r.runsOf("quiet"))
	assert.Equal(t, []string{"1"}, r.runsOf("rolling"))
	assert.Equal(t, []steady.Fault{{Run: "3", What: "SIGTERM"}}, r.Faults)
	assert.Equal(t, []string{"3"}, r.runsOf("faults"))
	assert.Equal(t, []string{"2", "3"}, r.runsOf("scale"))
	assert.Len(t, r.Runs, 3)

	r.Take(Run{ID: "4"}, &Results{Rolling: []steady.Outcome{{What: "rolling"}}})
	assert.Equal(t, "2", r.Runs[0].ID, "the first run has no results left, and is dropped")
}

func TestPictureIsWellFormed(t *testing.T) {
	for name, r := range map[string]*Results{"fixed": fixed(), "nothing": {}} {
		var seen strings.Builder
		circles := 0
		for d := xml.NewDecoder(strings.NewReader(r.Picture())); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
			switch token := token.(type) {
			case xml.CharData:
				seen.Write(token)
			case xml.StartElement:
				if token.Name.Local == "circle" {
					circles++
				}
			}
		}
		if name == "fixed" {
			assert.Contains(t, seen.String(), "2 cores <&>")
			assert.Contains(t, seen.String(), "neli on Kafka, T = 300 ms")
			assert.Equal(t, 2+1+1+len(families)+2, circles, "a dot for each trial, and the legend's")
		}
	}
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
	assert.FileExists(t, filepath.Join(dir, PictureName))
}

func TestAimsForAMillionRoles(t *testing.T) {
	of := func(processes, each int) crowd.Outcome {
		o := crowd.Outcome{Size: crowd.Size{Processes: processes, Each: each, Partitions: 1, Roles: 1_000_000, T: 5 * time.Second}, Heap: 60e6,
			Steps: &crowd.Steps{Over: 3}, Phases: []crowd.Phase{{What: crowd.LedFirst, Seconds: 8}, {What: crowd.FirstAnew, Seconds: 1.5, Started: 1}, {What: crowd.LedAnew, Seconds: 4, Started: 1}}}
		o.Steps.Count, o.Steps.Buckets[0], o.Steps.Buckets[5] = 9, 6, 3
		return o
	}
	met := func(o crowd.Outcome) map[string]bool {
		all := map[string]bool{}
		for _, a := range scaleAims(o) {
			what, _, _ := strings.Cut(a.What, ": ")
			all[what] = a.Met
		}
		return all
	}
	three, twenty := met(of(3, 1)), met(of(4, 5))
	for what, want := range map[string][2]bool{crowd.LedFirst: {false, true}, crowd.FirstAnew: {true, true}, crowd.LedAnew: {false, true},
		"steps of members": {false, false}, "memory of a member, live on the heap": {true, true}} {
		assert.Equal(t, want, [2]bool{three[what], twenty[what]}, what)
	}
	o := of(3, 1)
	assert.Equal(t, "3 of 9 longer, all ≤ 250ms", stepAims(o)[0].Measured)
	o.Steps = nil
	assert.Empty(t, stepAims(o), "older runs did not ask")
}
