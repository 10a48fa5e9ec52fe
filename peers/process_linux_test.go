//go:build linux

package peers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// nanos reads a clock that all processes of the machine share.
func nanos() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// process is a program that runs in a process of its own, as the test sees it.
type process struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	errors bytes.Buffer
}

// startProcess starts the program that an environment variable selects (see programs).
func startProcess(t *testing.T, name, variable string, orders any) *process {
	t.Helper()
	text, err := json.Marshal(orders)
	require.NoError(t, err)
	s := &process{name: name, cmd: exec.Command(os.Args[0]), lines: make(chan string, 10)}
	s.cmd.Env = append(os.Environ(), variable+"="+string(text))
	s.cmd.Stderr = &s.errors
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.in, err = s.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(s.lines)
		in := bufio.NewScanner(out)
		in.Buffer(nil, 1<<26)
		for in.Scan() {
			s.lines <- in.Text()
		}
	})
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		for range s.lines { // until it has ended
		}
		reading.Wait()
		_ = s.cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", s.name, &s.errors)
		}
	})
	return s
}
