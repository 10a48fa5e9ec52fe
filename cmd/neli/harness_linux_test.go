package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/sys/unix"
)

const (
	// lease is T in these tests.
	lease = 1500 * time.Millisecond
	// medium is T in tests that measure what happens before T is over, and in tests whose lease must not end even on a
	// busy machine.
	medium = 5 * time.Second
	// soon is the longest that any step may take on a busy machine.
	soon = 60 * time.Second
	// tick is the time between two checks of a condition.
	tick = 5 * time.Millisecond
)

var program string // this command, built

// programVariable is the environment variable that makes this test binary run as one of programs.
const programVariable = "NELI_TEST_PROGRAM"

// builtVariable is the environment variable with the path of a command that is built already, for a
// machine without a compiler.
const builtVariable = "NELI_TEST_BUILT"

var programs = map[string]func() int{}

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if name := os.Getenv(programVariable); name != "" {
		return programs[name]()
	}
	// The tests may have been started by nohup. A signal that is caught here is not ignored in the
	// programs that the tests start.
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	// This process becomes the parent of what a process under test leaves behind.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Println(err)
		return 1
	}
	dir, err := os.MkdirTemp("", "neli")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "neli")
	if built := os.Getenv(builtVariable); built != "" {
		program = built
		return m.Run()
	}
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Printf("go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// broker starts a Kafka broker in this process.
func broker(t *testing.T) *kfake.Cluster {
	t.Helper()
	return brokerWith(t)
}

// brokerWith starts a broker that has topics of one partition each.
func brokerWith(t *testing.T, topics ...string) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topics...))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// process is a running neli.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu     sync.Mutex
	lines  []string        // of its standard output
	errors strings.Builder // its standard error
}

// neli starts the command with arguments, against a cluster.
func neli(t *testing.T, c *kfake.Cluster, args ...string) *process {
	t.Helper()
	return neliWith(t, environment(c), args...)
}

// environment returns the environment of a neli that talks to a cluster.
func environment(c *kfake.Cluster) []string {
	address := "127.0.0.1:1"
	if c != nil {
		address = c.ListenAddrs()[0]
	}
	return append(os.Environ(), "NELI_BOOTSTRAP="+address, "NELI_GROUP=jobs", "NELI_TIMEOUT="+lease.String(), "NELI_LOG_LEVEL=info")
}

func neliWith(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return neliBy(t, func(*exec.Cmd) {}, env, args...)
}

// neliBy starts the command once change has adapted it.
func neliBy(t *testing.T, change func(*exec.Cmd), env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.CommandContext(context.Background(), program, args...), done: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = writer{p}
	change(p.cmd)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			p.mu.Unlock()
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = out.Close() // a process that should be dead may still hold the other end
		<-p.done
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Logf("%v\n%s\n%s", args, strings.Join(p.lines, "\n"), p.errors.String())
		}
	})
	return p
}

type writer struct{ *process }

func (w writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.errors.Write(b)
}

func (p *process) output() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...)
}

// says waits for the n-th line that begins with word, and returns the rest of the line.
func (p *process) says(word string, n int) string {
	p.t.Helper()
	found := ""
	require.Eventually(p.t, func() bool {
		count := 0
		for _, l := range p.output() {
			if rest, ok := strings.CutPrefix(l, word+" "); ok {
				if count++; count == n {
					found = rest
					return true
				}
			}
		}
		return false
	}, soon, 5*time.Millisecond, "%s", word)
	return found
}

// logs waits for a text on its standard error.
func (p *process) logs(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return strings.Contains(p.errors.String(), text)
	}, soon, 5*time.Millisecond, "%s", text)
}

// logged waits until its standard error matches a pattern, and returns the match of the group.
func (p *process) logged(pattern string) string {
	p.t.Helper()
	re, found := regexp.MustCompile(pattern), ""
	require.Eventually(p.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		m := re.FindStringSubmatch(p.errors.String())
		if m != nil {
			found = m[1]
		}
		return m != nil
	}, soon, 5*time.Millisecond, "%s", pattern)
	return found
}

// pid returns the number in the n-th line that begins with word.
func (p *process) pid(word string, n int) int {
	p.t.Helper()
	pid, err := strconv.Atoi(p.says(word, n))
	require.NoError(p.t, err)
	return pid
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// code waits for its end and returns its exit code.
func (p *process) code() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(soon):
		require.FailNow(p.t, "it does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// alive reports whether a process exists and is not a zombie. A process whose main thread is not the one
// that calls execve looks like a zombie for a moment, but has several threads then.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if fields[0] == "X" {
		return alive(pid) // the process is being removed, or is just calling execve
	}
	return fields[0] != "Z" || fields[17] != "1"
}

func dead(t *testing.T, within time.Duration, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !alive(pid) }, within, time.Millisecond, "%d is alive", pid)
	}
}

// stop stops a guard, and waits until its elector has resumed it: 50 checks in a row must find it not
// stopped. A guard whose lease ends meanwhile ends, too.
func stop(t *testing.T, guard int) {
	t.Helper()
	if err := unix.Kill(guard, unix.SIGSTOP); !errors.Is(err, unix.ESRCH) {
		require.NoError(t, err)
	}
	on := 0
	require.Eventually(t, func() bool {
		stat, err := stats(guard)
		if on++; err == nil && stat[0] == "T" {
			on = 0
		}
		return err != nil || on == 50
	}, soon, 5*time.Millisecond, "the guard goes on")
}

// field returns a field of /proc/<pid>/stat: 0 is the state, 1 the parent.
func field(t *testing.T, pid, n int) string {
	t.Helper()
	all, err := stats(pid)
	require.NoError(t, err)
	return all[n]
}

// stats returns the fields of /proc/<pid>/stat from the state on, or an error if there is no such process.
func stats(pid int) ([]string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.Fields(rest), err
}

// parent returns a process's parent.
func parent(t *testing.T, pid int) int {
	t.Helper()
	ppid, err := strconv.Atoi(field(t, pid, 1))
	require.NoError(t, err)
	return ppid
}

// family is a script whose shell waits for a grandchild. Only a signal to the group ends the grandchild.
const family = `echo token $NELI_TOKEN; sleep 1000 & echo grandchild $!; echo child $$; wait`
