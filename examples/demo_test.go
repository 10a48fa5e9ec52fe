package examples_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDemo(t *testing.T) {
	s := newStage(t)
	p := s.start("demo", "demo", "-pause", "300ms")
	const row = ` +\d +(\w+) #(\d+) +(\w+) #(\d+) +[\d.]+(m|µ)?s +[\d.]+(m|µ)?s$`
	for _, pattern := range []string{
		`An embedded broker listens`,
		`^ +role 0 +role 1 +role 2 +role 3$`,
		`→ \w+ killed`,
		`→ \w+ suspended`,
		`→ \w+ woken`,
		`found that it leads nothing, [\d.]+(m|µ)?s after waking`,
		`→ \w+ closed`,
		`→ dora started`,
		`→ dora killed, beside a sentinel`,
		`What happened`,
		`^\w+ killed` + row,
		`^\w+ suspended` + row,
		`^\w+ woken +– +no role moved$`,
		`^\w+ closed` + row,
		`^dora started` + row,
		`^dora killed, beside a sentinel` + row,
		`\d+ looks at a leader, \d+ terms of leadership checked`,
		`Overlaps: none\. Tokens: strictly increasing`,
		`^without a sentinel +▏█{20,} [\d.]+s$`,
		`^with a sentinel +▏█* [\d.]+m?s$`,
	} {
		s.await(p, pattern)
	}
	p.ends()
}

func TestDemoPeers(t *testing.T) {
	s := newStage(t)
	p := s.start("demo-peers", "demo-peers", "-pause", "300ms")
	const row = ` +\d +(\w+) #(\d+) +(\w+) #(\d+) +[\d.]+(m|µ)?s +[\d.]+(m|µ)?s$`
	for _, pattern := range []string{
		`There is no broker`,
		`→ \w+ and its log killed`,
		`→ \w+ suspended`,
		`→ \w+ woken`,
		`found that it leads nothing, [\d.]+(m|µ)?s after waking`,
		`→ \w+ started again`,
		`→ network cut: \w+ and \w+ alone`,
		`→ network whole again`,
		`→ \w+ closed`,
		`What happened`,
		`^\w+ and its log killed` + row,
		`^\w+ suspended` + row,
		`^\w+ woken +– +no role moved$`,
		`^network cut: \w+ and \w+ alone` + row,
		`^\w+ closed` + row,
		`\d+ looks at a leader, \d+ terms of leadership checked`,
		`Overlaps: none\. Tokens: strictly increasing`,
	} {
		s.await(p, pattern)
	}
	p.ends()
}

// However the demo ends, its members also end.
func TestDemoLeavesNothingBehind(t *testing.T) {
	for _, c := range []struct {
		program string
		sig     syscall.Signal
	}{{"demo", syscall.SIGINT}, {"demo", syscall.SIGKILL}, {"demo-peers", syscall.SIGINT}, {"demo-peers", syscall.SIGKILL}} {
		t.Run(c.program+" "+c.sig.String(), func(t *testing.T) {
			cmd := exec.Command(filepath.Join(binaries, c.program))
			// All members also have the writing end, so the pipe ends when they have ended.
			r, w, err := os.Pipe()
			require.NoError(t, err)
			defer r.Close()
			cmd.Stderr = w
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			require.NoError(t, w.Close())
			defer cmd.Process.Kill()
			readUntil(t, stdout, `anna #\d+`)

			require.NoError(t, cmd.Process.Signal(c.sig))
			require.NoError(t, r.SetReadDeadline(time.Now().Add(limit)))
			_, err = io.Copy(io.Discard, r)
			require.NoError(t, err, "a member lives on")
			require.Error(t, cmd.Wait())
		})
	}
}

// readUntil reads until the text read so far matches pattern.
func readUntil(t *testing.T, in io.Reader, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	var text []byte
	for buf := make([]byte, 4096); !re.Match(text); {
		n, err := in.Read(buf)
		require.NoError(t, err, string(text))
		text = append(text, buf[:n]...)
	}
}
