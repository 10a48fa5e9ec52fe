package sentinel

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// answerWithin is how long a sentinel may take to answer. Tests lengthen it.
var answerWithin = 2 * time.Second

const (
	// retryFirst and retryAtMost bound the pause before a member connects again, give or take a
	// random half. While a member waits, its crash costs the whole lease.
	retryFirst  = 100 * time.Millisecond
	retryAtMost = 10 * time.Second
)

// Client keeps a member registered. Its failures are never fatal: without a sentinel a crash costs
// T. Its methods may be called concurrently.
type Client struct {
	socket string
	logger *slog.Logger
	state  atomic.Pointer[Answer]
	opened chan Registration
	asks   chan *ask
	done   chan struct{} // closed when Run returns

	// What follows is used by Run's goroutine only.
	reg      Registration
	conn     connection
	commands []*command // those that run and may outlive this process
	pause    *backoff.ExponentialBackOff
}

// connection is a connection to a sentinel that has this process's registration.
type connection interface {
	// heard returns a channel of the sentinel's answers. It is closed when the connection ends.
	heard() <-chan Answer
	// guard registers a command. It returns both ends of the guard's connection: the file for the
	// guard, and the other end for this process.
	guard(g guardian) (guardConnection, *os.File, error)
	// settled tells the sentinel that the guards of all commands have registered.
	settled()
	// goodbye tells the sentinel to forget this member, waits for the answer, and closes.
	goodbye()
	// leave does the same without waiting for the answer.
	leave()
	close()
}

// guardConnection is this process's end of a guard's connection.
type guardConnection interface {
	clear() // says that nothing is left of the command, and closes
	close()
}

// command is a command that may outlive this process.
type command struct {
	line Line            // to its guard
	conn guardConnection // of its guard, at the present sentinel; nil: the sentinel does not know the command
}

// ask is a request to Run's goroutine, from Guard or from the end of a command.
type ask struct {
	over    bool // the command has ended; else it is about to start
	command *command
	done    chan struct{}
}

// errEnded: the connection to the sentinel has ended.
var errEnded = errors.New("the sentinel has ended the connection")

// NewClient returns a Client that does nothing until Run is called.
func NewClient(socket string, logger *slog.Logger) *Client {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = retryFirst, retryAtMost
	c := &Client{socket: socket, logger: logger, opened: make(chan Registration, 1), asks: make(chan *ask), done: make(chan struct{}), pause: b}
	c.state.Store(&Answer{State: None})
	return c
}

// Opened tells Run what to register. It must be called at most once, and does not block.
func (c *Client) Opened(reg Registration) { c.opened <- reg }

// State returns what the sentinel does for this process, as far as known.
func (c *Client) State() State { return c.state.Load().State }

// Taker is implemented by a Provider that needs the Client of its process. neli run has such a
// Provider, to tell the sentinel about its command.
type Taker interface{ TakeSentinel(*Client) }

// Run registers what Opened was given, and does so again after each refusal or lost connection,
// until ctx is done. Then it says goodbye to the sentinel and returns.
func (c *Client) Run(ctx context.Context) {
	defer close(c.done)
	retry := time.NewTimer(retryAtMost)
	defer retry.Stop()
	retry.Stop()
	for {
		var heard <-chan Answer
		if c.conn != nil {
			heard = c.conn.heard()
		}
		select {
		case <-ctx.Done():
			if c.conn != nil {
				c.conn.goodbye()
				c.conn = nil
			}
			c.state.Store(&Answer{State: None})
			return
		case c.reg = <-c.opened:
			c.register(retry)
		case <-retry.C:
			c.register(retry)
		case a, ok := <-heard:
			if !ok {
				a = Answer{State: Refused, Reason: errEnded.Error()}
			}
			c.note(a, retry)
		case a := <-c.asks:
			c.serve(a, retry)
		}
	}
}

// register connects to the sentinel, registers, and notes the answer.
func (c *Client) register(retry *time.Timer) {
	c.reg.Number++
	c.reg.Running = len(c.commands) > 0
	conn, a, err := dial(c.socket, c.reg)
	if err != nil {
		a = Answer{State: Refused, Reason: err.Error()}
	} else {
		c.conn = conn
	}
	c.note(a, retry)
	if c.conn == nil || !c.reg.Running {
		return
	}
	for _, one := range c.commands {
		if !c.tie(one, retry) {
			return
		}
	}
	c.conn.settled() // from now on the sentinel says that it watches
}

// tie registers the guard of a command at the sentinel, and passes the connection to the guard. If that fails it
// ends the registration and returns false.
func (c *Client) tie(one *command, retry *time.Timer) bool {
	if one.conn != nil {
		one.conn.close() // to a former sentinel, or of a former registration
		one.conn = nil
	}
	conn, file, err := c.conn.guard(guardian{c.reg.Process, c.reg.Secret, c.reg.Number})
	if err == nil {
		err = one.line.pass(file)
		_ = file.Close() // the guard has its own
		if err == nil {
			one.conn = conn
			return true
		}
		conn.close()
	}
	if c.state.Load().Reason != err.Error() {
		c.logger.Warn("the sentinel does not know of a command: a crash costs the whole lease", "error", err)
	}
	// Without the goodbye the sentinel would release this process's roles if it died now, though the
	// command may run. The command waits for this answer, so registering again must not hold it up.
	c.leave()
	c.state.Store(&Answer{State: Refused, Reason: err.Error()})
	retry.Reset(c.pause.NextBackOff())
	return false
}

// note stores the sentinel's answer, and logs a change. After a refusal it schedules the next attempt.
func (c *Client) note(a Answer, retry *time.Timer) {
	was := *c.state.Load()
	switch a.State {
	case Watching:
		c.pause.Reset()
		if was.State != Watching {
			c.logger.Info("a sentinel watches this process", "socket", c.socket)
		}
	case Registered:
	default:
		a.State = Refused
		c.leave() // from now on a command may start without the sentinel
		retry.Reset(c.pause.NextBackOff())
		if was != a {
			c.logger.Warn("no sentinel watches this process: a crash costs the whole lease", "socket", c.socket, "reason", a.Reason)
		}
	}
	if a.State == Registered && was.State == Refused {
		return // keep the refusal and its reason until the sentinel watches
	}
	c.state.Store(&a)
}

// leave ends the connection with a goodbye, and does not wait for the sentinel.
func (c *Client) leave() {
	if c.conn != nil {
		c.conn.leave()
		c.conn = nil
	}
}

// Guard tells the sentinel about a command that may outlive this process. If this process dies, the
// sentinel releases nothing until the command's guard says by a Clearance on file that nothing is left of
// it. The caller passes file to the guard and closes its own copy. file is nil if it could not be made; then
// a crash costs the whole lease while the command runs. The caller must call over when nothing is left of the
// command. Guard waits at most two seconds for the sentinel, and as long for a registration under way.
func (c *Client) Guard() (file *os.File, over func()) {
	line, file, err := newLine()
	if err != nil {
		c.logger.Warn("the sentinel does not know of a command: a crash costs the whole lease", "error", err)
	}
	one := &command{line: line}
	if !c.ask(&ask{command: one, done: make(chan struct{})}) {
		line.close()
		return file, func() {}
	}
	return file, sync.OnceFunc(func() {
		c.ask(&ask{over: true, command: one, done: make(chan struct{})})
		line.close()
	})
}

func (c *Client) ask(a *ask) bool {
	select {
	case c.asks <- a:
		<-a.done
		return true
	case <-c.done:
		return false
	}
}

// serve carries out an ask.
func (c *Client) serve(a *ask, retry *time.Timer) {
	defer close(a.done)
	switch {
	case a.over:
		c.commands = slices.DeleteFunc(c.commands, func(one *command) bool { return one == a.command })
		if a.command.conn != nil {
			a.command.conn.clear()
		}
	default:
		c.commands = append(c.commands, a.command)
		if c.conn != nil { // else the next registration says that a command runs
			c.tie(a.command, retry)
		}
	}
}
