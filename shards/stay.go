package shards

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/goneli/neli"
)

// servedWithin is how long a prepared shard is kept for Serve after this process has got the shard. Lead calls its
// function after the barrier has returned, or never if the term was over before that.
const servedWithin = time.Minute

var errGoexit = errors.New("it ended its goroutine")

// stay is what a process does for a shard, until Prepare has failed or Serve or Abandon has returned.
type stay struct {
	r     *run
	shard int
	ctx   context.Context // Prepare's
	end   context.CancelCauseFunc

	// Guarded by Set.mu.
	machine
	why     error         // the reason to end ctx and call Abandon
	err     error         // Prepare's
	changed chan struct{} // closed when the state changes
}

// ask returns what to do for a shard, on behalf of a call of Set.Prepare or a term. Without a Run st
// is nil: before the first Run, changed is closed when that begins; after a Run, changed is nil.
func (s *Set) ask(shard int, e event) (st *stay, do action, changed <-chan struct{}) {
	s.mu.Lock()
	if st = s.stays[shard]; st == nil {
		if s.run == nil || s.run.over {
			defer s.mu.Unlock()
			return nil, nothing, s.begins
		}
		st = &stay{r: s.run, shard: shard, changed: make(chan struct{})}
		st.ctx, st.end = context.WithCancelCause(context.Background())
		s.stays[shard] = st
	}
	do = st.take(e, ErrMoved)
	changed = st.changed
	s.mu.Unlock()
	st.carryOut(do)
	return st, do, changed
}

// tell takes an event, with its reason, and does what follows.
func (st *stay) tell(e event, why error) {
	st.r.s.mu.Lock()
	do := st.take(e, why)
	st.r.s.mu.Unlock()
	st.carryOut(do)
}

// take is the part of an event that needs the lock.
func (st *stay) take(e event, why error) action {
	before := st.state
	do := st.on(e)
	switch {
	case e == failed && before == Preparing:
		st.err = why
	case do == cancel || before != Draining && st.state == Draining && st.why == nil:
		st.why = why
	}
	if do == prepare || do == abandon {
		st.r.calls.Add(1)
	}
	if st.state == Idle && before != Idle {
		delete(st.r.s.stays, st.shard)
	}
	if st.state != before {
		close(st.changed)
		st.changed = make(chan struct{})
	}
	return do
}

// carryOut is the part without the lock. The caller of ask calls Prepare or Serve.
func (st *stay) carryOut(do action) {
	switch do {
	case cancel:
		st.end(st.why)
	case abandon:
		st.end(st.why)
		go func() {
			defer st.r.calls.Done()
			defer st.tell(left, nil)
			st.r.s.f.Abandon(st.shard, st.why)
		}()
	}
}

// failure returns the error of a Prepare that has failed.
func (st *stay) failure() error {
	st.r.s.mu.Lock()
	defer st.r.s.mu.Unlock()
	return st.err
}

// follow gives up what no term has taken when ctx ends, or servedWithin later if this process leads the shard by then.
func (st *stay) follow(ctx context.Context) {
	context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, neli.ErrLed) {
			st.tell(calledOff, st.r.why(cause))
			return
		}
		time.AfterFunc(servedWithin, func() { st.tell(calledOff, ErrLost) })
	})
}

// prepare calls Prepare.
func (st *stay) prepare() (err error) {
	defer st.r.calls.Done()
	err = errGoexit
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			st.tell(failed, err)
			st.end(err)
			return
		}
		st.tell(ready, nil)
	}()
	return st.r.s.f.Prepare(st.ctx, st.shard)
}

// prepareLed calls Prepare for a shard that this process leads, as soon as there is a place.
func (st *stay) prepareLed() {
	select {
	case st.r.places <- struct{}{}:
		defer func() { <-st.r.places }()
		_ = st.prepare() // the term that waits for it logs its error
	case <-st.ctx.Done():
		st.tell(failed, context.Cause(st.ctx))
		st.r.calls.Done()
	}
}

// serve calls Serve.
func (st *stay) serve(lead context.Context, l neli.Leadership) error {
	ctx := newServeContext(lead, st.r)
	told := make(chan struct{})
	stop := context.AfterFunc(lead, func() {
		defer close(told)
		ctx.look()
		st.tell(over, context.Cause(ctx.Context))
	})
	defer func() { // also if Serve panics or ends its goroutine
		if !stop() {
			<-told
		}
		st.end(context.Cause(ctx.Context))
		ctx.end(nil)
		st.tell(left, nil)
	}()
	return st.r.s.f.Serve(ctx, l)
}

// serveContext follows Lead's context. Like that, it asks the clock in Err, Done and Value.
type serveContext struct {
	context.Context
	lead context.Context
	r    *run
	end  context.CancelCauseFunc
}

func newServeContext(lead context.Context, r *run) *serveContext {
	ctx, end := context.WithCancelCause(context.WithoutCancel(lead))
	return &serveContext{ctx, lead, r, end}
}

func (c *serveContext) look() {
	if c.Context.Err() == nil && c.lead.Err() != nil {
		c.end(c.r.why(context.Cause(c.lead)))
	}
}

func (c *serveContext) Err() error {
	c.look()
	return c.Context.Err()
}

func (c *serveContext) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

func (c *serveContext) Value(key any) any {
	c.look()
	return c.Context.Value(key)
}
