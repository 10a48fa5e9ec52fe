package machine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/wire"
	"github.com/goneli/neli/lab/witness"
)

// A guest is one incarnation of a member, as the runner sees it.
type guest struct {
	host    string
	name    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	samples *witness.Samples
	born    time.Duration
	done    chan struct{} // closed when the process has ended and its output was read

	mu     sync.Mutex
	died   time.Duration // witness.Never while it runs
	killed bool
	stops  []witness.Span // To is Never while it is stopped
	ops    map[int64]*history.Op
	order  []int64
	orders map[int64]*history.Order
	ails   []history.Ail // To is Never while it is unwell
	id     string        // the id of its process in exclusive mode
	closed *member.Line  // its report of Close
	// replaced is its report of how many files it has lost.
	replaced *member.Line
	ended    []string // Leads that returned before Close
	garbled  error
}

// newGuest starts a member on a host, in a PID namespace of its own if namespace is set. Its output and its
// log are also written to dir.
func newGuest(host *wire.Host, dir string, params member.Params, namespace bool) (*guest, error) {
	fd, err := unix.MemfdCreate(params.Name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making memory to share: %w", err)
	}
	shared := os.NewFile(uintptr(fd), params.Name)
	defer shared.Close() // the mapping keeps the memory
	samples, err := witness.Open(shared)
	if err != nil {
		return nil, err
	}
	create := func(what string) (*os.File, error) {
		return os.Create(filepath.Join(dir, params.Name+what))
	}
	var files [3]*os.File
	for i, what := range []string{".log", ".jsonl", ".stderr"} {
		if files[i], err = create(what); err != nil {
			return nil, err
		}
	}
	log, told, stderr := files[0], files[1], files[2]
	defer log.Close()
	defer stderr.Close()
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	g := &guest{host: host.Name, name: params.Name, samples: samples, died: witness.Never,
		done: make(chan struct{}), ops: map[int64]*history.Op{}, orders: map[int64]*history.Order{}}
	g.cmd = exec.Command(exe)
	g.cmd.Env = append(os.Environ(), member.Env+"=1")
	g.cmd.Stderr = stderr
	g.cmd.ExtraFiles = []*os.File{shared, log}
	if namespace {
		g.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	}
	stdout, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if g.stdin, err = g.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	g.born = witness.Now()
	if err := host.Start(g.cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", params.Name, err)
	}
	go g.live(stdout, told)
	return g, g.say(params)
}

// live reads the member's output until the member ends.
func (g *guest) live(stdout io.Reader, told *os.File) {
	defer close(g.done)
	defer told.Close()
	lines := bufio.NewScanner(io.TeeReader(stdout, told))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line member.Line
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			g.mu.Lock()
			g.garbled = fmt.Errorf("%s wrote %q: %w", g.name, lines.Text(), err)
			g.mu.Unlock()
			continue
		}
		g.hear(line)
	}
	if err := lines.Err(); err != nil { // nothing is read any more, so the member may block when it writes
		g.mu.Lock()
		g.garbled = fmt.Errorf("reading what %s wrote: %w", g.name, err)
		g.mu.Unlock()
	}
	_ = g.cmd.Wait() // the status adds nothing: the runner killed it, or complaints reports it
	g.mu.Lock()
	defer g.mu.Unlock()
	g.died = witness.Now()
	g.endStop(g.died)
	g.endAil(g.died)
}

func (g *guest) hear(line member.Line) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch line.Say {
	case member.SayInvoke:
		g.order = append(g.order, line.ID)
		g.ops[line.ID] = line.Op
	case member.SayReturn:
		g.ops[line.ID] = line.Op
	case member.SayOrder:
		g.orders[line.ID] = line.Order
	case member.SayID:
		g.id = line.Text
	case member.SayHealth:
		g.endAil(line.At)
		if line.Text != member.DoBeWell {
			ail := history.Ail{Span: witness.Span{From: line.At, To: witness.Never}, Hangs: line.Text == member.DoHang}
			g.ails = append(g.ails, ail)
		}
	case member.SayReplaced:
		g.replaced = &line
	case member.SayClosed:
		g.closed = &line
	case member.SayEnded:
		g.ended = append(g.ended, fmt.Sprintf("%s Lead: %s", history.ModeName(line.Mode), line.Text))
	}
}

func (g *guest) say(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = g.stdin.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("sending a command to %s: %w", g.name, err)
	}
	return nil
}

func (g *guest) running() bool {
	select {
	case <-g.done:
		return false
	default:
		return true
	}
}

// kill ends the member as a crash would.
func (g *guest) kill() {
	g.mu.Lock()
	g.killed = true
	g.mu.Unlock()
	_ = g.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	<-g.done
}

// suspend sends the member SIGSTOP.
func (g *guest) suspend() error {
	g.silence()
	return g.cmd.Process.Signal(syscall.SIGSTOP)
}

// silence notes that the member does nothing from now on.
func (g *guest) silence() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stops = append(g.stops, witness.Span{From: witness.Now(), To: witness.Never})
}

// thawed notes that the member continues.
func (g *guest) thawed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.endStop(witness.Now())
}

// wake sends the member SIGCONT.
func (g *guest) wake() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.endStop(witness.Now())
	err := g.cmd.Process.Signal(syscall.SIGCONT)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (g *guest) endStop(at time.Duration) {
	if n := len(g.stops); n > 0 && g.stops[n-1].To == witness.Never {
		g.stops[n-1].To = at
	}
}

func (g *guest) endAil(at time.Duration) {
	if n := len(g.ails); n > 0 && g.ails[n-1].To == witness.Never {
		g.ails[n-1].To = at
	}
}

// process returns the id of the member's process in exclusive mode.
func (g *guest) process() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.id
}

// obeyed reports whether the result of an order was reported, success or not.
func (g *guest) obeyed(id int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.orders[id]
	return o != nil && o.Returned != witness.Never
}

// answers returns the member's current answer for a role: witness.No if it does not lead, is
// suspended or has ended.
func (g *guest) answers(mode, role int) int64 {
	r, ok := g.samples.Latest(mode, role)
	if !ok || !g.running() || witness.Now()-r.Last.After > 200*time.Millisecond {
		return witness.No
	}
	return r.Answer
}

// firstAfter returns the lowest token, higher than the given one, under which the member has led a
// role of exclusive mode, or No.
func (g *guest) firstAfter(role int, token int64) int64 {
	first := witness.No
	for _, r := range g.samples.Runs().Of(history.Exclusive, role) {
		if r.Answer > token && (first == witness.No || r.Answer < first) {
			first = r.Answer
		}
	}
	return first
}

// life returns the record of a member that has ended.
func (g *guest) life() history.Life {
	g.mu.Lock()
	defer g.mu.Unlock()
	return history.Life{Host: g.host, Member: g.name, Born: g.born, Died: g.died, Killed: g.killed,
		Runs: g.samples.Runs(), Stops: append([]witness.Span(nil), g.stops...),
		Ails: append([]history.Ail(nil), g.ails...)}
}

// told returns the orders that the member was given.
func (g *guest) told() []history.Order {
	g.mu.Lock()
	defer g.mu.Unlock()
	var orders []history.Order
	for _, id := range slices.Sorted(maps.Keys(g.orders)) {
		orders = append(orders, *g.orders[id])
	}
	return orders
}

// operations returns the member's operations on the store.
func (g *guest) operations() []history.Op {
	g.mu.Lock()
	defer g.mu.Unlock()
	ops := make([]history.Op, len(g.order))
	for i, id := range g.order {
		ops[i] = *g.ops[id]
	}
	return ops
}

// complaints returns what was wrong with the member's output, with Lead and Close, and with its
// end.
func (g *guest) complaints() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := append([]string(nil), g.ended...)
	if g.garbled != nil {
		out = append(out, g.garbled.Error())
	}
	switch {
	case g.killed:
	case g.closed == nil:
		out = append(out, fmt.Sprintf("ended by itself: %s", g.cmd.ProcessState))
	case g.closed.Text != "":
		out = append(out, "Close: "+g.closed.Text)
	}
	for i := range out {
		out[i] = g.name + ": " + out[i]
	}
	return out
}
