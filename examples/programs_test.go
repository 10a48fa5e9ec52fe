package examples_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// limit is the longest wait for anything. Most steps take a few seconds.
const limit = 2 * time.Minute

var binaries string // directory of the built programs

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "neli-examples")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator),
		"./basic", "./barrier", "./lead", "./shards", "./nonexclusive", "./fenced-sql", "./fenced-kafka", "./cron", "./asynq", "./runner", "./demo", "./demo-peers")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the examples: %v\n%s", err, out)
		return 1
	}
	// Without cgo.
	static := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./static")
	static.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := static.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building without cgo: %v\n%s", err, out)
		return 1
	}
	binaries = dir
	return m.Run()
}

// stage runs programs, and records all their output in one order.
type stage struct {
	t    *testing.T
	news chan struct{}    // there are new lines
	next map[*program]int // the first line after those that await returned

	mu    sync.Mutex
	lines []line
}

type line struct {
	from *program
	text string
}

// program is a running example.
type program struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

func newStage(t *testing.T) *stage {
	return &stage{t: t, news: make(chan struct{}, 1), next: map[*program]int{}}
}

func (s *stage) heard(l line) {
	s.mu.Lock()
	s.lines = append(s.lines, l)
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default: // is told already
	}
}

// all returns the lines so far.
func (s *stage) all() []line {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines[:len(s.lines):len(s.lines)]
}

// start starts an example under the given name, which appears in its output.
func (s *stage) start(example, name string, args ...string) *program {
	s.t.Helper()
	return s.startAt(filepath.Join(binaries, example), name, nil, args...)
}

// startAt is start for any program, with additions to its environment.
func (s *stage) startAt(path, name string, env []string, args ...string) *program {
	s.t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	stdout, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(s.t, cmd.Start())
	p := &program{t: s.t, name: name, cmd: cmd, done: make(chan struct{})}
	var reading sync.WaitGroup
	reading.Go(func() {
		for in := bufio.NewScanner(stdout); in.Scan(); {
			s.heard(line{p, in.Text()})
		}
	})
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
		w.Close()
		reading.Wait()
	}()
	s.t.Cleanup(func() {
		p.kill()
		if s.t.Failed() {
			s.t.Logf("all output:\n%s", s.transcript())
		}
	})
	return p
}

// await waits for the next line of p, or of any program if p is nil, that matches pattern. It returns the
// program and the groups of the match.
func (s *stage) await(p *program, pattern string) (from *program, groups []string) {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for i := 0; ; {
		lines := s.all()
		if i == len(lines) {
			select {
			case <-s.news:
			case <-deadline.C:
				s.t.Fatalf("no line %q within %v", pattern, limit)
			}
			continue
		}
		l := lines[i]
		i++
		if p != nil && l.from != p || i <= s.next[l.from] {
			continue
		}
		if m := re.FindStringSubmatch(l.text); m != nil {
			s.next[l.from] = i
			return l.from, m[1:]
		}
	}
}

// said returns the number of lines of p so far that match pattern.
func (s *stage) said(p *program, pattern string) int {
	return s.saidBy(p, pattern, len(s.all()))
}

// first returns the index of p's first line from the given one on that matches pattern, or the number of all
// lines if there is none.
func (s *stage) first(p *program, pattern string, from int) int {
	re := regexp.MustCompile(pattern)
	lines := s.all()
	for i := from; i < len(lines); i++ {
		if lines[i].from == p && re.MatchString(lines[i].text) {
			return i
		}
	}
	return len(lines)
}

// saidBy returns the number of p's lines before the given index that match pattern.
func (s *stage) saidBy(p *program, pattern string, end int) int {
	re := regexp.MustCompile(pattern)
	n := 0
	for _, l := range s.all()[:end] {
		if l.from == p && re.MatchString(l.text) {
			n++
		}
	}
	return n
}

func (s *stage) transcript() string {
	var out strings.Builder
	for _, l := range s.all() {
		fmt.Fprintln(&out, l.text)
	}
	return out.String()
}

func (p *program) signal(sig syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig), p.name)
}

// ends requires that p ends by itself, with exit code 0.
func (p *program) ends() {
	p.t.Helper()
	select {
	case <-p.done:
		require.NoError(p.t, p.err, p.name)
	case <-time.After(limit):
		p.t.Fatalf("%s does not end", p.name)
	}
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.done
}
