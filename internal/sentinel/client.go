package sentinel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	// answerWithin is how long a sentinel may take to answer.
	answerWithin = 2 * time.Second
	// retryFirst and retryAtMost bound the pause before a member connects again.
	retryFirst  = 100 * time.Millisecond
	retryAtMost = time.Minute
)

// Client keeps a member registered. Nothing of it is fatal: without a sentinel a crash costs T.
// Its methods may be called concurrently.
type Client struct {
	socket string
	logger *slog.Logger
	state  atomic.Pointer[Answer]
	opened chan Registration
	asks   chan *ask
	done   chan struct{} // closed when Run returns

	// Of Run only.
	reg     Registration
	conn    connection
	running int // commands that may outlive this process
	pause   *backoff.ExponentialBackOff
}

// connection is a sentinel that this process is registered at.
type connection interface {
	// heard has what the sentinel says, and is closed when the connection has ended.
	heard() <-chan Answer
	// guard registers a command. The file is for its guard, the connection for this process.
	guard(process, secret string) (guardConnection, *os.File, error)
	// goodbye has this member forgotten, and ends the connection.
	goodbye()
	close()
}

// guardConnection is this process's end of a guard's connection.
type guardConnection interface {
	clear()
}

// ask is what Guard and its end want of Run.
type ask struct {
	over bool            // a command has ended
	conn guardConnection // of it; nil: none
	file *os.File        // the answer
	done chan struct{}
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

// Opened says what to register. It must be called once at most, and does not block.
func (c *Client) Opened(reg Registration) { c.opened <- reg }

// State is what the sentinel does for this process, as far as it is known.
func (c *Client) State() State { return c.state.Load().State }

// Taker is a Provider that is given the Client of the process that it was made for: neli run
// tells the sentinel of its command with it.
type Taker interface{ TakeSentinel(*Client) }

// Run registers what Opened says, and again whenever the sentinel was restarted, until ctx is done. Its last
// act is the goodbye.
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
			c.drop(true)
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

// register connects to the sentinel, and notes what that says.
func (c *Client) register(retry *time.Timer) {
	c.reg.Running = c.running > 0
	conn, a, err := dial(c.socket, c.reg)
	if err != nil {
		a = Answer{State: Refused, Reason: err.Error()}
	} else {
		c.conn = conn
	}
	c.note(a, retry)
}

// note notes what the sentinel does, and says so when that has changed.
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
		c.drop(false)
		retry.Reset(c.pause.NextBackOff())
		if was != a {
			c.logger.Warn("no sentinel watches this process: a crash costs the whole lease", "socket", c.socket, "reason", a.Reason)
		}
	}
	if a.State == Registered && was.State == Refused {
		return // until it is known to watch, the last refusal is what there is to say
	}
	c.state.Store(&a)
}

// drop ends the connection.
func (c *Client) drop(goodbye bool) {
	if c.conn == nil {
		return
	}
	if goodbye {
		c.conn.goodbye()
	} else {
		c.conn.close()
	}
	c.conn = nil
}

// Guard tells the sentinel of a command that may outlive this process: what this process
// held is not released before the guard has said on file that nothing is left of it (SayClear).
// file is nil if there is no sentinel now. over must be called when nothing is left of
// the command. Guard waits for the sentinel for two seconds at most.
func (c *Client) Guard() (file *os.File, over func()) {
	a := &ask{done: make(chan struct{})}
	if !c.ask(a) {
		return nil, func() {}
	}
	return a.file, sync.OnceFunc(func() { c.ask(&ask{over: true, conn: a.conn, done: make(chan struct{})}) })
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

// serve does what Guard and its end want.
func (c *Client) serve(a *ask, retry *time.Timer) {
	defer close(a.done)
	if a.over {
		c.running--
		if a.conn != nil {
			a.conn.clear()
		}
		if c.running == 0 && c.conn != nil && c.reg.Running {
			c.again(retry) // it was told that something runs
		}
		return
	}
	c.running++
	if c.conn == nil {
		return // the next registration says so
	}
	var err error
	if a.conn, a.file, err = c.conn.guard(c.reg.Process, c.reg.Secret); err != nil {
		c.logger.Warn("the sentinel does not know of a command: a crash costs the whole lease", "error", err)
		c.again(retry)
	}
}

// again registers anew, with what runs now.
func (c *Client) again(retry *time.Timer) {
	c.drop(true)
	c.register(retry)
}

// SayClear says on a guard's file that nothing is left of its command.
func SayClear(f *os.File) error {
	if f == nil {
		return nil
	}
	if _, err := f.Write([]byte(`{"clear":true}`)); err != nil {
		return fmt.Errorf("the sentinel was not told that nothing is left of the command: %w", err)
	}
	return nil
}
