package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/judge"
	"github.com/goneli/neli/internal/sim"
)

// noting lists edits. Each replaces a text that its file has once. They make an Elector keep a journal of its steps,
// with the readings of its clocks on which it acts (testdata/journal.go.txt).
var noting = []struct{ file, old, by string }{
	{"../../internal/elector/loop.go", "n.Read(entry, r, bad, now) })", "n.Read(entry, r, bad, now); e.noteEntry(entry, now) })"},
	{"../../internal/elector/loop.go", "	input(e.node, now)\n", "	e.note(\"see\", now, 0, nil)\n	input(e.node, now)\n"},
	{"../../internal/elector/loop.go", "	r := e.node.Ready(now)\n", "	r := e.node.Ready(now)\n	e.noteSteps(r, now)\n"},
}

// TestTracesOfProcesses lets TLC decide whether the specification allows what real processes on a real broker do while
// their leader is suspended, another is killed, and members join and leave. Their times are cut to microseconds, and a
// wait may be shorter by 1 ms, the margin for the granularity of clocks. If waits had to last half a lease longer, TLC
// must refuse the first Claim.
func TestTracesOfProcesses(t *testing.T) {
	judge.Jar(t)
	const timeout = 2 * time.Second
	trace, leases := sim.Replay(notedElection(t, newEnv(t, 1, 0, nil), timeout))
	require.Len(t, leases, 4)
	t.Logf("%d events", strings.Count(trace, "what |->"))
	decide := func(margin time.Duration) error {
		return judge.Judge(t, "TraceLease", 0.0005, margin, leases, []string{trace})
	}
	require.NoError(t, decide(0))
	require.Regexp(t, `does not allow this(.|\n)*kind \|-> "Claim"`, decide(timeout/2))
}

// notedElection has members elect leaders, and returns their group and their journals.
func notedElection(t *testing.T, e *env, timeout time.Duration) (group string, lines []sim.Line) {
	t.Helper()
	journals := t.TempDir()
	t.Setenv("NELI_JOURNAL", journals)
	program := noted(t)
	el := exclusive(t, e, neli.NominationOpen, timeout, func(c *contenderParams) { c.Roles = 2 })
	el.bound = 0 // other tests judge it
	with := func(m *memberParams) { m.program = program }
	el.start("first", with)
	el.leader(0, firstLeader)
	second, third := el.start("second", with), el.start("third", with)
	el.follows(second)
	el.follows(third)
	old, asleep := el.suspendLeader(0)
	next := el.leader(0, patience, old.member)
	waitPast(t, asleep+el.longEnough())
	old.wake()
	old.awaits("fenced", patience)
	next.Kill()
	el.leader(0, patience, next.member)
	el.follows(el.start("fourth", with))
	last := el.leader(0, patience, next.member)
	last.close(patience)
	el.leader(0, patience, next.member, last.member)

	files, err := filepath.Glob(filepath.Join(journals, "*"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range bytes.Lines(text) {
			var l sim.Line
			if json.Unmarshal(line, &l) == nil { // the last one may not be whole yet
				lines = append(lines, l)
			}
		}
	}
	return el.params.Group, lines
}

// noted builds this test binary with an Elector that keeps a journal.
func noted(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	journal, err := filepath.Abs("testdata/journal.go.txt")
	require.NoError(t, err)
	added, err := filepath.Abs("../../internal/elector/journal.go")
	require.NoError(t, err)
	replace := map[string]string{added: journal}
	for _, x := range noting {
		path, err := filepath.Abs(x.file)
		require.NoError(t, err)
		text, err := os.ReadFile(either(replace[path], path))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), x.old), "%s: %s", x.file, x.old)
		replace[path] = filepath.Join(dir, filepath.Base(path))
		require.NoError(t, os.WriteFile(replace[path], []byte(strings.Replace(string(text), x.old, x.by, 1)), 0o600))
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	overlay, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "member")
	require.NoError(t, os.WriteFile(overlay, list, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}
