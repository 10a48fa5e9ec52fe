package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/oracle"
	"github.com/goneli/neli/lab/chaos/store"
	"github.com/goneli/neli/lab/witness"
)

func at(s float64) time.Duration { return time.Hour + time.Duration(s*float64(time.Second)) }

func window(s float64) witness.Window {
	return witness.Window{Before: at(s), After: at(s) + time.Microsecond}
}

// forged is a run in which m1 was suspended, m2 took over, and m1 wrote too late.
func forged(dir string) Subject {
	run := func(mode int, answer int64, from, to float64) witness.Run {
		return witness.Run{Neli: mode, Answer: answer, First: window(from), Last: window(to)}
	}
	r := history.Record{Start: at(0), End: at(60), Roles: 1,
		Lives: []history.Life{
			{Host: "m1", Member: "m1.1", Born: at(-5), Died: witness.Never, Stops: []witness.Span{{From: at(10), To: at(20)}},
				Runs: witness.Runs{run(history.Exclusive, 3, -1, 10), run(history.NonExclusive, witness.NoToken, -1, 10), run(history.NonExclusive, witness.NoToken, 20, 60),
					run(history.Exclusive, witness.No, 20, 60)}},
			{Host: "m2", Member: "m2.1", Born: at(-5), Died: at(50), Killed: true, Runs: witness.Runs{run(history.Exclusive, witness.No, -1, 12),
				run(history.Exclusive, 19, 12, 50), run(history.NonExclusive, witness.No, -1, 50)}},
		},
		Ops: []history.Op{
			{Member: "m2.1", Kind: history.Write, Token: 19, Value: 1, Invoked: at(13), Returned: at(13.1), Outcome: history.Accepted},
			{Member: "m1.1", Kind: history.Write, Token: 3, Value: 2, Invoked: at(20), Returned: at(20.1), Outcome: history.Rejected},
		},
		Log: history.ElectionLog{Claims: []history.Claim{{Member: "m1.1", Offset: 3}, {Member: "m2.1", Offset: 19}}},
		Faults: []history.Fault{
			{Step: 1, Kind: "member stopped", Sort: "stopped", Label: "SIGSTOP m1 <&>", Targets: []string{"m1"}, Span: witness.Span{From: at(10), To: at(20)}, Calm: true},
			{Step: 2, Kind: "member killed", Sort: "killed", Label: "SIGKILL m2", Targets: []string{"m2"}, Span: witness.Span{From: at(50), To: at(59)}, Crash: true, Calm: true},
		},
	}
	log := []store.Entry{
		{Serial: 1, Token: 19, Value: 1, Member: "m2.1", Accepted: true},
		{Serial: 2, Token: 3, Value: 2, Member: "m1.1", Stale: true},
	}
	limits := oracle.Limits{Recovery: oracle.Recovery{Takeover: 30 * time.Second}, Pace: oracle.Pace{Timeout: 18 * time.Second, Beat: time.Second}, Crash: time.Second, Register: time.Minute}
	return Subject{Settings: [][2]string{{"seed", "7"}}, Record: r, Verdict: oracle.Judge(r, log, limits),
		Dir: dir}
}

func TestWrite(t *testing.T) {
	s := forged(t.TempDir())
	require.Empty(t, s.Verdict.Violations)
	require.NoError(t, Write(s))

	text, err := os.ReadFile(filepath.Join(s.Dir, Name))
	require.NoError(t, err)
	words := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{
		"OK: no violation", "seed 7",
		"10.000 20.000 member stopped SIGSTOP m1 <&>",
		"member stopped 1 1 2000 2000 2000 2000",
		"member stopped 1 2.00 2.00 40.0 member killed 1 10.00 10.00 39.0",
		"of roles whose leader was not struck 0 – – – 0",
		"writes rejected by their token 1",
		"stale writes that the unguarded register took 1",
		"register of role 0 linearizable",
		"0 19 m2.1 12.000 50.000",
		"exclusive 0 50.000 10000 member killed",
		"| 0.0 | 2: 1 killed, 1 stopped | 2 | 0 | 10.0, 39.0 (member killed) |",
	} {
		assert.Contains(t, words, want)
	}
}

func TestViolationsComeFirst(t *testing.T) {
	s := forged(t.TempDir())
	s.Verdict.Violations = []string{"role 0: two leaders"}
	var text strings.Builder
	Text(&text, s)
	assert.True(t, strings.HasPrefix(text.String(), "FAILED: 1 violation\n\n! role 0: two leaders\n"), text.String())
}
