//go:build linux

// Package consul moves from consul lock.
package consul

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
)

// job prints its name and token, and runs until it is ended.
const job = `#!/bin/sh
trap 'echo ended $WHO $NELI_TOKEN $1 >>"$SAYS"; exit 0' TERM
echo began $WHO $NELI_TOKEN $1 >>"$SAYS"
while :; do sleep 0.1; done
`

// after.sh runs the job on one of two machines. When it ends there, the job runs on the other one.
func TestAfter(t *testing.T) {
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "neli"), ".")
	build.Dir = "../../../cmd/neli"
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "send-invoices"), []byte(job), 0o700))
	script, err := filepath.Abs("after.sh")
	require.NoError(t, err)
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	defer broker.Close()
	says := filepath.Join(dir, "says")

	start := func(name string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "sh", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "NELI_BOOTSTRAP="+broker.ListenAddrs()[0],
			"NELI_TIMEOUT=1500ms", "WHO="+name, "SAYS="+says)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		return cmd
	}
	// said waits for a line with this prefix, and returns its last word but one: the token.
	said := func(prefix string) string {
		t.Helper()
		var token string
		require.Eventually(t, func() bool {
			b, _ := os.ReadFile(says)
			for line := range strings.Lines(string(b)) {
				if words := strings.Fields(line); strings.HasPrefix(line, prefix+" ") && len(words) == 4 && words[3] == "--all" {
					token = words[2]
					return true
				}
			}
			return false
		}, time.Minute, 10*time.Millisecond)
		return token
	}
	anna := start("anna")
	first := said("began anna")
	boris := start("boris")
	require.NoError(t, anna.Process.Signal(syscall.SIGTERM))
	require.Equal(t, first, said("ended anna"))
	require.NoError(t, anna.Wait(), "the exit code is the job's")
	second := said("began boris")
	require.NotEqual(t, first, second)

	// When its elector is killed, the job begins elsewhere, with another token.
	clara := start("clara")
	require.NoError(t, boris.Process.Kill())
	_ = boris.Wait()
	require.NotEqual(t, second, said("began clara"))
	require.NoError(t, clara.Process.Signal(syscall.SIGTERM))
	require.NoError(t, clara.Wait())
}
