//go:build unix

package show

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/witness"
)

// The demo fails if a member fails at its end.
func TestEndReturnsTheErrorsOfMembers(t *testing.T) {
	processes, err := nursery.New("")
	require.NoError(t, err)
	t.Cleanup(processes.Close)
	s := &Story{Ctx: t.Context(), screen: screen{out: io.Discard}}
	for name, exit := range map[string]string{"anna": "0", "boris": "1"} {
		p, err := child.New(exec.Command("sh", "-c", "read args; read order; exit "+exit), nil,
			child.Options{Nursery: processes, Dir: t.TempDir(), Name: name})
		require.NoError(t, err)
		s.Members = append(s.Members, p)
	}
	require.EqualError(t, s.Tell(s.End), "boris: exit status 1")
}

func samples(t *testing.T) *witness.Samples {
	file, err := os.Create(filepath.Join(t.TempDir(), "samples"))
	require.NoError(t, err)
	defer file.Close()
	s, err := witness.Open(file)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// member returns a member that found itself leading role 0, with this token, at two instants.
func member(t *testing.T, name string, token int64, first, last time.Duration) *Process {
	p := &Process{Name: name, Samples: samples(t)}
	run := -1
	for _, at := range []time.Duration{first, last} {
		run = p.Samples.Take(run, 0, 0, token, witness.Window{Before: at, After: at + 1})
	}
	return p
}

func TestConclusion(t *testing.T) {
	const ms = time.Millisecond
	var out strings.Builder
	s := &Story{Members: []*Process{member(t, "a", 1, 10*ms, 20*ms), member(t, "b", 2, 50*ms, 60*ms)},
		steps:  []step{{what: "a killed", at: 25 * ms, bar: "killed"}, {what: "b closed", at: 70 * ms}},
		screen: screen{out: &out}}
	require.NoError(t, s.conclude())
	require.Regexp(t, `a killed +0 +a #1 +b #2 +25ms +30ms`, out.String())
	require.Regexp(t, `b closed +– +no role moved`, out.String())
	require.Contains(t, out.String(), "4 looks at a leader, 2 terms")
	require.Contains(t, out.String(), "Overlaps: none")
	require.Regexp(t, `killed +▏█{50} 25ms`, out.String())

	s.Members = append(s.Members, member(t, "c", 3, 55*ms, 65*ms))
	require.ErrorContains(t, s.conclude(), "two leaders at one instant")
}
