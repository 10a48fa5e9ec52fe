package prepare

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// slow is how long a call may go on after the end of its context until that is logged.
const slow = 5 * time.Second

// Calls are the calls of the application's Prepare. Its methods may be called concurrently.
type Calls struct {
	prepare  func(ctx context.Context, role int) error
	cause    func(Why) error
	returned func(call Begin, ok bool)
	logger   *slog.Logger

	calls sync.WaitGroup
	mu    sync.Mutex // guards the fields below; never held during calls of other code
	open  map[uint64]*call
	early map[uint64]Why // calls whose End came before their Begin
	over  bool
}

// call is a call that has not returned, or whose context has not ended.
type call struct {
	role     int
	cancel   context.CancelCauseFunc
	returned bool
	ended    bool
	late     *time.Timer // set when its context ends before it returns
}

// New returns Calls of prepare; if that is nil, none is ever to begin. cause returns what context.Cause is to say of an
// end. returned is called once for each call, on its goroutine or that of Begin.
func New(prepare func(ctx context.Context, role int) error, cause func(Why) error, returned func(call Begin, ok bool), logger *slog.Logger) *Calls {
	return &Calls{prepare: prepare, cause: cause, returned: returned, logger: logger, open: map[uint64]*call{}, early: map[uint64]Why{}}
}

// Do carries out what a Preparer wants, except for its states to be said.
func (c *Calls) Do(do Do) {
	for _, end := range do.End {
		c.End(end)
	}
	for _, b := range do.Begin {
		c.Begin(b, b.Role)
	}
}

// Begin begins a call. Its context ends by End or Stop, not when it returns: until then what it has prepared is
// expected to stay so.
func (c *Calls) Begin(b Begin, role int) {
	is := &call{role: role}
	var ctx context.Context
	ctx, is.cancel = context.WithCancelCause(context.Background())
	c.mu.Lock()
	why, early := c.early[b.Call]
	delete(c.early, b.Call)
	if c.over && !early {
		why, early = Unwilling, true
	}
	if !early {
		c.open[b.Call] = is
		c.calls.Add(1) // under the lock: none begins after Stop, while Wait waits
	}
	c.mu.Unlock()
	if early { // what a step decided is carried out without a lock, so one step may overtake another
		is.cancel(c.cause(why))
		c.returned(b, false)
		return
	}
	go func() {
		defer c.calls.Done()
		c.run(ctx, b, role)
	}()
}

var errGoexit = errors.New("it ended its goroutine")

// run calls Prepare. If that panics or ends its goroutine, as t.FailNow does, it has failed.
func (c *Calls) run(ctx context.Context, b Begin, role int) {
	err := errGoexit
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
			c.logger.Error("Config.Prepare panicked", "role", role, "error", err, "stack", string(debug.Stack()))
		} else if err != nil && ctx.Err() == nil {
			c.logger.Warn("Config.Prepare failed", "role", role, "error", err)
		}
		c.noteReturned(b.Call)
		c.returned(b, err == nil)
	}()
	err = c.prepare(ctx, role)
}

func (c *Calls) noteReturned(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := c.open[id]
	is.returned = true
	if is.late != nil {
		is.late.Stop()
	}
	if is.ended {
		delete(c.open, id)
	}
}

// End ends the context of a call.
func (c *Calls) End(e End) {
	c.mu.Lock()
	is := c.open[e.Call]
	if is == nil {
		if !c.over {
			c.early[e.Call] = e.Why
		}
		c.mu.Unlock()
		return
	}
	c.end(e.Call, is)
	c.mu.Unlock()
	is.cancel(c.cause(e.Why))
}

// end notes, under the lock, that the context of a call ends.
func (c *Calls) end(id uint64, is *call) {
	is.ended = true
	if is.returned {
		delete(c.open, id)
		return
	}
	if is.late == nil {
		is.late = time.AfterFunc(slow, func() {
			c.logger.Warn("Config.Prepare has not returned although its context has ended", "role", is.role, "after", slow)
		})
	}
}

// Stop ends all contexts, and lets no call begin any more.
func (c *Calls) Stop() {
	c.mu.Lock()
	c.over = true
	var open []*call
	for id, is := range c.open {
		if !is.ended {
			open = append(open, is)
		}
		c.end(id, is)
	}
	c.mu.Unlock()
	for _, is := range open {
		is.cancel(c.cause(Unwilling))
	}
}

// Wait returns when no call of the application's code is left. Call it after Stop.
func (c *Calls) Wait() { c.calls.Wait() }
