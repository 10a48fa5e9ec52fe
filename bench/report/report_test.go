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

	"github.com/goneli/neli/bench/crowd"
	"github.com/goneli/neli/bench/idle"
	"github.com/goneli/neli/bench/member"
	"github.com/goneli/neli/bench/steady"
	"github.com/goneli/neli/bench/trial"
)

// fixed are results that nobody measured.
func fixed() *Results {
	return &Results{
		Command: "make bench-peers N=4", Date: "2026-01-02", Took: "3m", Machine: "2 cores <&>", Versions: []string{"raft v1"}, N: 4, Few: 1, Window: "15s",
		Beds: []Bed{{Family: "neli", Name: "1 broker", RoundTrips: []float64{1, 2, 3}, Alone: &idle.Usage{ServersCPU: 0.0266}}},
		Systems: []System{
			{Family: "neli", Bed: "1 broker", Setting: "Open, T = 300ms", Lease: 300, Timeout: 300, Idle: []idle.Usage{{Members: 3, MembersCPU: 0.01, Messages: 20, Bytes: 4200}},
				Results: &trial.Results{
					Killed: []float64{280, 290, 301, 340}, Stopped: []float64{300}, First: []float64{620}, Asked: []float64{5, 6}, Gap: []float64{4, 8}, Trips: []float64{1, 1, 2, 2, 2, 3},
					Joins: 2, JoinGap: []float64{0, 0}, Woken: 1, Double: []float64{0}, Terms: 9,
					Leading: &member.Check{Leads: true, Nanos: 61.2}, Following: &member.Check{Nanos: 5}}},
			{Family: "neli", Bed: "1 broker", Setting: "Assigned", Lease: 6000, Results: &trial.Results{Killed: []float64{9000}}},
			{Family: "raft", Bed: "3 nodes", Setting: "default", Lease: 1000,
				Results: &trial.Results{Killed: []float64{1500}, Woken: 2, WokenLed: 1, Double: []float64{0, 3.4}, Joins: 2, Disturbed: 1, Terms: 4,
					Failures: []string{"join: too late"}}},
		},
		Scale: []crowd.Outcome{{Size: crowd.Size{Processes: 8, Each: 2, Partitions: 100, Roles: 1000, T: time.Minute}, Window: "30s", Lost: 3,
			Phases: []crowd.Phase{{What: "all led after the start", Seconds: 61.26, Spread: 1.5}}, Quiet: idle.Usage{Members: 16, MembersCPU: 0.5}}},
		Quiet:   []steady.Outcome{{What: "quiet, brokers: 1", T: "300ms", Minutes: 30}},
		Rolling: []steady.Outcome{{What: "rolling restart", T: "2s", Lost: 1, Minutes: 5, Groups: 3, Restarts: 6, Vacant: 2040}},
	}
}

func TestPage(t *testing.T) {
	page, err := fixed().Page()
	require.NoError(t, err)
	for _, want := range []string{
		"written by `make bench-peers N=4`, on 2026-01-02",
		"- raft v1\n",
		"| neli | 1 broker | Open, T = 300ms | 300 | 620 [620–620], 1 | 296 [280–340], 4 | 0.98, 1.13 | 300 [300–300], 1 |",
		"| neli | 1 broker | Open, T = 300ms | 5.5 [5.0–6.0], 2 | 6.0 [4.0–8.0], 2 | 5.5 [4.0–7.0], 2 | 0 of 2 | 0.0 [0.0–0.0], 2 | 0 of 1 | 0 in 9 terms |",
		"| raft | 3 nodes | default | – | – | – | 1 of 2 | – | **1 of 2**, up to 3.4 ms | 0 in 4 terms |",
		"| neli | 1 broker | Open, T = 300ms | 61 ns, 0 allocs | 5.0 ns, 0 allocs |",
		"| neli | 1 broker | no group | 0 | 0.0 | 0.0 | 0.00 | 2.66 | 0.0 | 0.0 |",
		"| neli | 1 broker | Open, T = 300ms | 3 | 20.0 | 4.2 | 1.00 | 0.00 | 0.0 | 0.0 |",
		"- 1 broker: median 2.00 ms, 99th percentile 3.0 ms, n = 3; two in a row: median 3.0 ms, 95th percentile 3.0 ms, maximum 3.0 ms",
		"- rolling restart, T = 2s, 3 groups, 6 restarts: terms lost: 1; 2040 ms without a leader",
		"- raft, 3 nodes, default: join: too late",
		"16 members in 8 processes, 100 partitions, 1000 roles, T = 1m0s",
		"but for those of the process that died: 3.",
		"| all led after the start | 61.3 | 1.50 |",
		"| 16 | 0.0 | 0.0 | 50.00 | 0.00 | 0.0 | 0.0 |",
		"over it in 1 of 1 rows; and so is in\n0 the slowest",
		"Not met: 3 of 8.",
	} {
		assert.Contains(t, page, want)
	}
	assert.NotContains(t, page, "<no value>")
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "|") {
			assert.True(t, strings.HasSuffix(line, "|\n"), "a row of a table is a line of its own: %q", line)
		}
	}
}

func TestAims(t *testing.T) {
	verdicts := map[string]Aim{}
	for _, a := range fixed().Aims() {
		verdicts[a.What] = a
	}
	for what, want := range map[string]Aim{
		"crash, median: 1 broker, Open, T = 300ms":         {Bound: "≤ 300 ms", Measured: "296 ms (n = 4)", Met: true},
		"crash, maximum: 1 broker, Open, T = 300ms":        {Bound: "≤ 352 ms", Measured: "340 ms (n = 4)", Met: true},
		"hand-over, median: 1 broker, Open, T = 300ms":     {Bound: "≤ 5.5 ms", Measured: "6.0 ms (n = 2)"},
		"hand-over, maximum: 1 broker, Open, T = 300ms":    {Bound: "≤ 7.0 ms", Measured: "8.0 ms (n = 2)"},
		"two leaders at once: 1 broker, Open, T = 300ms":   {Bound: "none", Measured: "0 of 1 woken; 0 otherwise, in 9 terms", Met: true},
		"terms lost: quiet, brokers: 1, T = 300ms, 30 min": {Bound: "none", Measured: "0", Met: true},
		"terms lost: rolling restart, T = 2s, 5 min":       {Bound: "none", Measured: "1"},
	} {
		want.What = what
		assert.Equal(t, want, verdicts[what])
	}
	assert.NotContains(t, verdicts, "crash, median: 1 broker, Assigned", "its time is the session's, not T")
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
			assert.Contains(t, seen.String(), "neli, 1 broker, Open, T = 300ms")
			assert.Equal(t, 4+1+1+len(colours), circles, "a dot for each trial, and the legend's")
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
	require.NoError(t, kept.Write(dir))
	want, err := fixed().Page()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(dir, PageName))
	require.NoError(t, err)
	assert.Equal(t, want, string(page), "nothing is lost on the way")
	assert.FileExists(t, filepath.Join(dir, PictureName))
}
