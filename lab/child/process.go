//go:build unix

package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/witness"
)

// Process is a child as its parent sees it.
type Process struct {
	*nursery.Process
	Name    string
	Samples *witness.Samples
	Born    time.Duration // the time just before its start
	stdin   io.WriteCloser
	done    chan struct{}

	mu      sync.Mutex
	died    time.Duration // the time just after its end; Never while it runs
	killed  bool
	stops   []witness.Span // To is Never while it is stopped
	garbled error
}

// Options say how to start a child.
type Options struct {
	*nursery.Nursery
	Dir, Name string                  // NAME.log and NAME.stderr in Dir are its log and its standard error; without Dir both are this process's standard error
	Keep      bool                    // its lines are kept, in NAME.jsonl
	By        func(*exec.Cmd) error   // starts the process in place of cmd.Start; may be nil
	Hear      func(line []byte) error // gets each line of its output; may be nil
}

// New starts a child, and gives it its parameters. It returns the child if it was started, even with an error.
func New(cmd *exec.Cmd, params any, o Options) (*Process, error) {
	p := &Process{Name: o.Name, done: make(chan struct{}), died: witness.Never}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close() // the child has its own descriptors
		}
	}()
	shared, err := memory()
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, shared) // the mappings keep it
	if p.Samples, err = witness.Open(shared); err != nil {
		return nil, err
	}
	log, err := o.open(".log")
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, log)
	stderr, err := o.open(".stderr")
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, stderr)
	// Not cmd.StdoutPipe: Wait closes that, and the last lines could be lost.
	out, mouth, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, mouth)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = mouth, stderr, []*os.File{shared, log}
	by := o.By
	if by == nil {
		by = (*exec.Cmd).Start
	}
	if p.stdin, err = cmd.StdinPipe(); err == nil {
		p.Born = witness.Now()
		p.Process, err = o.StartBy(cmd, by)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", o.Name, err), out.Close())
	}
	go p.live(out, o)
	return p, p.Say(params)
}

func (o Options) open(what string) (*os.File, error) {
	if o.Dir == "" {
		fd, err := syscall.Dup(int(os.Stderr.Fd()))
		return os.NewFile(uintptr(fd), o.Name+what), err
	}
	return os.OpenFile(filepath.Join(o.Dir, o.Name+what), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// memory returns a file without a name, in memory where that is possible: writing pages back to a disk would stall samplers.
func memory() (*os.File, error) {
	f, err := os.CreateTemp("/dev/shm", "neli-samples-")
	if err != nil {
		f, err = os.CreateTemp("", "neli-samples-")
	}
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// live reads the child's output until the child ends.
func (p *Process) live(out *os.File, o Options) {
	defer close(p.done)
	if err := p.listen(out, o); err != nil {
		p.garble(err)
	}
	_ = out.Close() // otherwise the child may wait for ever to write
	<-p.Process.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.died = witness.Now()
	p.awake(p.died)
}

func (p *Process) listen(out io.Reader, o Options) error {
	if o.Keep {
		kept, err := o.open(".jsonl")
		if err != nil {
			return err
		}
		defer kept.Close()
		out = io.TeeReader(out, kept)
	}
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // a line that was cut off counts for nothing
		}
		if err != nil {
			return fmt.Errorf("reading what %s wrote: %w", p.Name, err)
		}
		if o.Hear == nil {
			continue
		}
		if err := o.Hear(line); err != nil {
			p.garble(fmt.Errorf("%s wrote %q: %w", p.Name, line, err))
		}
	}
}

func (p *Process) garble(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.garbled = err
}

// Garbled returns what was wrong with the child's output.
func (p *Process) Garbled() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.garbled
}

// Say sends the child a command.
func (p *Process) Say(command any) error {
	b, err := json.Marshal(command)
	if err == nil {
		_, err = p.stdin.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("sending a command to %s: %w", p.Name, err)
	}
	return nil
}

// Done is closed when the child has ended and its output was read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether it has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Died returns the time of its end; witness.Never if it runs.
func (p *Process) Died() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.died
}

// Kill ends the child as a crash would, and returns the time just before.
func (p *Process) Kill() time.Duration {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	at := witness.Now()
	p.Process.Kill()
	<-p.done
	_ = p.stdin.Close()
	return at
}

// Killed reports whether Kill was called.
func (p *Process) Killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// Suspend sends the child SIGSTOP, and returns the time just before.
func (p *Process) Suspend() (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := witness.Now()
	p.stops = append(p.stops, witness.Span{From: at, To: witness.Never})
	return at, p.Signal(syscall.SIGSTOP)
}

// Wake sends the child SIGCONT, and returns the time just before.
func (p *Process) Wake() (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := witness.Now()
	p.awake(at)
	err := p.Signal(syscall.SIGCONT)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return at, err
}

func (p *Process) awake(at time.Duration) {
	if n := len(p.stops); n > 0 && p.stops[n-1].To == witness.Never {
		p.stops[n-1].To = at
	}
}

// Stops returns the times in which the child was suspended. To is Never if it still is.
func (p *Process) Stops() []witness.Span {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.stops)
}

// Answers returns the child's present answer for a role: witness.No if it does not lead, is suspended or has ended, or if
// its newest sample is older than fresh.
func (p *Process) Answers(contender, role int, fresh time.Duration) int64 {
	stops := p.Stops()
	r, ok := p.Samples.Latest(contender, role)
	suspended := len(stops) > 0 && stops[len(stops)-1].To == witness.Never
	if !ok || suspended || !p.Running() || witness.Now()-r.Last.After > fresh {
		return witness.No
	}
	return r.Answer
}

// Passes returns how often the child has sampled all roles.
func (p *Process) Passes() int64 { return p.Samples.Noted(notePasses) }

// Records returns the number of records that a contender has read from its log.
func (p *Process) Records(contender int) int64 { return p.Samples.Noted(noteRecords(contender)) }

// Read returns when a contender read its last record.
func (p *Process) Read(contender int) time.Duration {
	return time.Duration(p.Samples.Noted(noteRead(contender)))
}
