package job

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli"
	"github.com/goneli/neli/cmd/neli/internal/guard"
)

// Exit codes besides those of the command. CodeWaited and CodeFailure are the same as those of timeout(1).
const (
	CodeLost    = 122 // leadership was lost, with Once
	CodeWaited  = 124 // not elected within Wait
	CodeFailure = 125 // this program failed

	codeKilled = 128 + int(syscall.SIGKILL)
)

const (
	// patience is how long a guard may take to carry out an order.
	patience = time.Second
	// killBefore is how long before the end of a revocation's drain the command is killed. For a short
	// drain it is a quarter of the drain.
	killBefore = 500 * time.Millisecond
)

// Options say which command to run, and when.
type Options struct {
	Command []string // the command and its arguments
	Env     []string // its environment, without NELI_TOKEN and the like
	Topic   string   // for NELI_TOPIC
	Drain   time.Duration
	Wait    time.Duration // 0: without limit
	Keep    bool          // contend again after the command has ended
	Once    bool          // do not contend again after leadership was lost
	Log     *slog.Logger
	// Guard tells a sentinel of a command that is about to start; nil: there is no sentinel. file is
	// for the guard, nil if no sentinel is connected. over is called when nothing is left of the command.
	Guard func() (file *os.File, over func())
}

// Run contends for role 0 of n, runs the command whenever it leads, and returns the exit code. The
// error, if there is one, is for people. signals are those that this process receives. Run leaves n
// open: close it at once, or no other process runs the command.
func Run(n *neli.Neli, o Options, signals <-chan os.Signal) (int, error) {
	guard.AdoptOrphans()
	k := &kin{pids: map[int]bool{}}
	defer guard.Reap(k.has)()
	var waited <-chan time.Time
	if o.Wait > 0 {
		timer := time.NewTimer(o.Wait)
		defer timer.Stop()
		waited = timer.C
	}
	for {
		c := newContest(n, o, k)
		res := c.run(signals, waited)
		if !res.again {
			return res.code, res.err
		}
		waited = nil // it was elected
	}
}

// result is how a contest ended.
type result struct {
	code  int
	again bool
	err   error
}

// contest is one period of contending, until the command has ended or there is no more reason to
// contend. It may have several terms.
type contest struct {
	Options
	n    *neli.Neli
	kin  *kin
	stop context.CancelFunc

	mu      sync.Mutex
	elected bool            // at least once
	over    bool            // no further command may start
	outcome *result         // nil: none yet
	command chan<- struct{} // receives a value when signals wait for the command that runs; nil: none runs
	waiting []os.Signal     // for the command, in the order in which they came
}

func newContest(n *neli.Neli, o Options, k *kin) *contest {
	return &contest{Options: o, n: n, kin: k}
}

func (c *contest) run(signals <-chan os.Signal, waited <-chan time.Time) result {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c.stop = stop
	var work sync.WaitGroup
	work.Go(func() { c.dispatch(ctx, signals, waited) })
	err := c.n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
		forwarded := make(chan struct{}, 1)
		if c.begin(forwarded) {
			c.term(ctx, l, forwarded)
			c.begin(nil)
			c.belated()
		}
		return nil
	})
	stop()
	work.Wait()
	if c.outcome == nil { // Lead ended by itself
		return result{code: CodeFailure, err: err}
	}
	return *c.outcome
}

// finish ends the contest. The first result counts, but a result without again replaces one with it: a
// signal to end may come when the command has just ended.
func (c *contest) finish(r result) {
	c.mu.Lock()
	c.over = true
	if c.outcome == nil || c.outcome.again && !r.again {
		c.outcome = &r
	}
	c.mu.Unlock()
	c.stop()
}

// begin sets where signals go from now on: to command, or nowhere if command is nil. It reports false if
// the contest is over, so that no command may start.
func (c *contest) begin(command chan<- struct{}) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over && command != nil {
		return false
	}
	c.elected = c.elected || command != nil
	c.command = command
	return true
}

// belated handles signals that came when the command had just ended.
func (c *contest) belated() {
	if slices.ContainsFunc(c.take(), ends) {
		c.finish(result{})
	}
}

// forward makes a signal wait for the command. As in the kernel, only one of each kind waits: starting
// a command may take seconds, and resizing a terminal sends many signals. The caller holds the mutex.
func (c *contest) forward(s os.Signal) {
	c.waiting = append(slices.DeleteFunc(c.waiting, func(w os.Signal) bool { return w == s }), s)
	select {
	case c.command <- struct{}{}:
	default: // it has been told already
	}
}

// take returns the signals that wait for the command.
func (c *contest) take() []os.Signal {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.waiting
	c.waiting = nil
	return waiting
}

// dispatch passes signals on to the command. If none runs, a signal to end ends the contest.
func (c *contest) dispatch(ctx context.Context, signals <-chan os.Signal, waited <-chan time.Time) {
	for {
		select {
		case s := <-signals:
			c.mu.Lock()
			if c.command == nil {
				c.over = c.over || ends(s)
			} else {
				c.forward(s)
			}
			over := c.command == nil && ends(s) // not c.over, which may be set because the command has ended
			c.mu.Unlock()
			if over {
				c.finish(result{})
			}
		case <-waited:
			c.mu.Lock()
			late := !c.elected
			c.over = c.over || late
			c.mu.Unlock()
			if late {
				c.finish(result{code: CodeWaited, err: fmt.Errorf("not elected within %v (--wait): %s", c.Wait, unelected(c.n))})
			}
		case <-ctx.Done():
			return
		}
	}
}

// ends reports whether a signal asks to end.
func ends(s os.Signal) bool {
	return s == unix.SIGTERM || s == unix.SIGINT || s == unix.SIGHUP || s == unix.SIGQUIT
}

// Signals returns the signals that go to the command instead of this process. A signal that this
// process was started to ignore goes to neither.
func Signals() []os.Signal {
	return guard.NotIgnored(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP)
}
