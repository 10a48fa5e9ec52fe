package sentinel

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/said"
)

// memoryLog is one log in memory, of one partition.
type memoryLog struct {
	id      string
	codec   lease.Codec
	openErr error
	lostErr error // what Watch returns
	close   func()
	entries chan elector.Entry
	closed  chan struct{}

	mu       sync.Mutex
	end      int64
	appended func(*lease.Record) // called for each record that the sentinel appends, with the mutex held
}

func newMemoryLog(id, group string) *memoryLog {
	m := &memoryLog{id: id, codec: lease.Codec{Group: group, Log: id}, entries: make(chan elector.Entry, 100_000), closed: make(chan struct{}), appended: func(*lease.Record) {}}
	m.close = sync.OnceFunc(func() { close(m.closed) })
	m.entries <- elector.Entry{Reset: true}
	m.put(&lease.Record{Kind: lease.Claim, Session: lease.Session{Process: "first", N: 1}, Read: -1, Seq: 1, T: testT, Longest: lease.Unsaid, Roles: []int32{0}, Fresh: true})
	return m
}

// put appends a record.
func (m *memoryLog) put(r *lease.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(m.codec.Encode(r))
}

func (m *memoryLog) add(value []byte) {
	m.entries <- elector.Entry{Offset: m.end, Value: value}
	m.end++
}

// claim appends a Claim by which a process wins a free role.
func (m *memoryLog) claim(process string, role int32, t time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(m.codec.Encode(&lease.Record{Kind: lease.Claim, Session: lease.Session{Process: process, N: 1}, Read: m.end - 1, Seq: 1, T: t, Longest: testT, Roles: []int32{role}}))
}

func (m *memoryLog) Open(ctx context.Context) (int, string, error) { return 1, m.id, m.openErr }
func (m *memoryLog) Next(ctx context.Context, timeout time.Duration) (elector.Entry, bool, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case e := <-m.entries:
		return e, true, nil
	case <-ctx.Done():
	case <-timer.C:
	}
	return elector.Entry{}, false, nil
}

func (m *memoryLog) Append(_ elector.Address, value []byte, report func(error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.codec.Decode(value)
	if err != nil {
		return err
	}
	m.add(value)
	m.appended(r)
	go report(nil)
	return nil
}

func (m *memoryLog) Watch(ctx context.Context) error {
	if m.lostErr == nil {
		<-ctx.Done()
	}
	return m.lostErr
}

func (m *memoryLog) Verify()               {}
func (m *memoryLog) Back(int, func() bool) {}
func (m *memoryLog) Close()                { m.close() }

// post is a sentinel that listens at a socket and has a log in memory.
type post struct {
	t      *testing.T
	socket string
	log    *memoryLog
	said   *said.Text
	hub    *Hub
	server *Server
	stop   func()

	mu    sync.Mutex
	left  map[string]bool // by process: the sentinel has said goodbye for it, so it counts as dead
	freed map[string]bool // by process: the sentinel has released its roles
	news  chan struct{}
}

func directory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // others may look
	return dir
}

func startPost(t *testing.T, socket string, change func(*Options, *memoryLog)) *post {
	t.Helper()
	return prepare(t, socket, change)()
}

// prepare makes a sentinel that listens and takes nothing until start is called, as if it were suspended.
func prepare(t *testing.T, socket string, change func(*Options, *memoryLog)) (start func(...func(*Server)) *post) {
	t.Helper()
	p := &post{t: t, socket: socket, log: newMemoryLog("id", "g"), said: &said.Text{}, left: map[string]bool{}, freed: map[string]bool{}, news: make(chan struct{}, 1)}
	p.log.appended = func(r *lease.Record) {
		p.mu.Lock()
		if r.Kind == lease.Hello {
			p.left[r.Session.Process] = true
		}
		if r.Kind == lease.Release {
			p.freed[r.Session.Process] = true
		}
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
	opt := Options{Open: func(Place, *slog.Logger) (elector.Log, error) { return p.log, nil }, Name: "s",
		Rules: func() Rules {
			return Rules{Process: "sentinel", Name: "s", Random: func(d time.Duration) time.Duration { return d / 2 }}
		},
		Now: clock.System().Now, Logger: p.said.Logger(slog.LevelInfo)}
	if change != nil {
		change(&opt, p.log)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.hub = NewHub(ctx, opt)
	var err error
	p.server, err = Listen(socket, p.hub, opt.Logger)
	require.NoError(t, err)
	served := make(chan error, 1)
	p.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-served)
		p.hub.Wait()
	})
	return func(changes ...func(*Server)) *post {
		for _, f := range changes {
			f(p.server)
		}
		go func() { served <- p.server.Serve(ctx) }()
		t.Cleanup(p.stop)
		return p
	}
}

func (p *post) isDead(process string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left[process]
}

// dies waits until the sentinel treats a process as dead.
func (p *post) dies(process string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.isDead(process) }, 20*time.Second, time.Millisecond, "nobody noticed the death")
}

// childMode is the environment variable that makes this test's binary a member.
const childMode = "NELI_SENTINEL_CHILD"

func TestMain(m *testing.M) {
	// A busy machine may give a sentinel no processor for longer than the usual two seconds.
	answerWithin = 10 * time.Second
	if d, err := time.ParseDuration(os.Getenv("NELI_ANSWER")); err == nil {
		answerWithin = d
	}
	if mode := os.Getenv(childMode); mode != "" {
		child(mode)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs a member. It prints its process id and each new state, takes orders from its standard
// input, and ends when that ends.
func child(mode string) {
	if mode == "guard" {
		clearance := NewClearance(os.NewFile(3, "elector"))
		_, _ = io.Copy(io.Discard, os.Stdin)
		for lasts := os.Getenv("NELI_LASTS"); lasts != ""; <-time.After(10 * time.Millisecond) { // its command runs as long as this path exists
			if _, err := os.Stat(lasts); err != nil {
				break
			}
		}
		_ = clearance.Say()
		return
	}
	reg := registration(NewSecret())
	if mode == "count" {
		reg.T = minimumT
		count()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := NewClient(os.Getenv("NELI_SOCKET"), slog.New(slog.DiscardHandler))
	ended := make(chan struct{})
	go func() { c.Run(ctx); close(ended) }()
	c.Opened(reg)
	was := State("")
	in := make(chan string)
	go func() {
		defer close(in)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			in <- lines.Text()
		}
	}()
	fmt.Println(reg.Process)
	var over func()
	for {
		if s := c.State(); s != was {
			was = s
			fmt.Println(s)
		}
		select {
		case order, ok := <-in:
			switch {
			case !ok:
				return
			case order == "goodbye":
				cancel()
				<-ended
				fmt.Println("ended")
			case order == "guard":
				var file *os.File
				file, over = c.Guard()
				fmt.Println("guarded", startGuard(file))
			case order == "exec":
				sleep, err := exec.LookPath("sleep")
				fmt.Println(errors.Join(err, syscall.Exec(sleep, []string{"sleep", "1000"}, nil)))
			case order == "eat":
				for eaten := [][]byte{}; ; eaten = append(eaten, bytes.Repeat([]byte{1}, 1<<20)) {
				}
			case order == "over":
				over()
				fmt.Println("over")
			case order == "break":
				c.asks <- &ask{over: true, done: make(chan struct{}), command: &command{conn: breaker{c}}}
				fmt.Println("broken")
			}
		case <-time.After(time.Millisecond):
		}
	}
}

// startGuard starts the guard of a command. When the member has died, it says that nothing is left of the command.
func startGuard(file *os.File) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childMode+"=guard")
	cmd.ExtraFiles = []*os.File{file}
	if _, err = cmd.StdinPipe(); err != nil {
		return err
	}
	return errors.Join(cmd.Start(), file.Close())
}

// breaker closes a Client's connection, in the Client's own goroutine.
type breaker struct{ c *Client }

func (b breaker) clear() { _ = b.c.conn.(*unixConnection).c.Close() }
func (b breaker) close() {}

// process is a running child.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	id  string
}

func startChild(t *testing.T, socket, mode string, change ...func(*exec.Cmd)) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), childMode+"="+mode, "NELI_SOCKET="+socket)
	p.cmd.Stderr = os.Stderr
	for _, f := range change {
		f(p.cmd)
	}
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	p.out = bufio.NewScanner(out)
	require.True(t, p.out.Scan())
	p.id = p.out.Text()
	return p
}

// says waits until the child prints a line.
func (p *process) says(want string) {
	p.t.Helper()
	for p.out.Scan() {
		if p.out.Text() == want {
			return
		}
	}
	p.t.Fatalf("the child never said %q", want)
}

func (p *process) order(text string) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in, text)
	require.NoError(p.t, err)
}

func (p *process) kill() { _ = p.cmd.Process.Signal(syscall.SIGKILL) }

var errTest = errors.New("a test's own error")

func socketIn(dir string) string { return filepath.Join(dir, "sentinel.sock") }

func (p *post) members() int {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	return p.hub.registry.Members()
}
