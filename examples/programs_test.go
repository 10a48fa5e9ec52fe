package examples_test

import (
	"bytes"
	"fmt"
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

	"github.com/goneli/neli/lab/nursery"
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
		"./basic", "./barrier", "./lead", "./shards", "./nonexclusive", "./fenced-sql", "./fenced-kafka", "./cron", "./asynq", "./runner", "./service", "github.com/goneli/neli/lab/demo", "github.com/goneli/neli/lab/demo-peers")
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
	t         *testing.T
	processes *nursery.Nursery
	news      chan struct{}    // there are new lines
	next      map[*program]int // the first line after those that await returned

	mu    sync.Mutex
	lines []line
}

type line struct {
	from *program
	text string
}

// program is a running example.
type program struct {
	*nursery.Process
	t    *testing.T
	name string
}

func newStage(t *testing.T) *stage {
	processes, err := nursery.New("")
	require.NoError(t, err)
	s := &stage{t: t, processes: processes, news: make(chan struct{}, 1), next: map[*program]int{}}
	t.Cleanup(func() {
		processes.Close()
		if t.Failed() {
			t.Logf("all output:\n%s", s.transcript())
		}
	})
	return s
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
	p := &program{t: s.t, name: name}
	out := &lines{heard: func(text string) { s.heard(line{p, text}) }}
	cmd.Stdout, cmd.Stderr = out, out
	var err error
	p.Process, err = s.processes.Start(cmd)
	require.NoError(s.t, err)
	return p
}

// lines passes on what is written, line by line.
type lines struct {
	heard func(text string)
	begun []byte // a line without its end
}

func (l *lines) Write(b []byte) (int, error) {
	l.begun = append(l.begun, b...)
	for {
		text, rest, ended := bytes.Cut(l.begun, []byte("\n"))
		if !ended {
			return len(b), nil
		}
		l.heard(string(text))
		l.begun = rest
	}
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
	require.NoError(p.t, p.Signal(sig), p.name)
}

// suspend returns when p has stopped.
func (p *program) suspend() {
	p.t.Helper()
	require.NoError(p.t, p.Suspend(), p.name)
}

// ends requires that p ends by itself, with exit code 0.
func (p *program) ends() {
	p.t.Helper()
	select {
	case <-p.Done():
		require.Equal(p.t, "exit status 0", p.State(), p.name)
	case <-time.After(limit):
		p.t.Fatalf("%s does not end", p.name)
	}
}
