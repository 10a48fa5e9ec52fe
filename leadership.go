package neli

import (
	"context"
	"time"
)

// Leadership describes the term in which Lead runs a function.
type Leadership struct {
	Role      int
	Partition int
	// Token is the fencing token of this term; −1 in non-exclusive mode.
	Token int64

	n  *Neli
	id int64
}

// Valid reports whether this term still lasts at this instant. It is a check of the clock, as
// IsLeader is. It is false by the time the context ends with ErrFenced. After ErrRevoked it stays
// true while the lease is kept, also for a role that SetRoles removed.
func (l Leadership) Valid() bool {
	if l.n == nil {
		return false
	}
	id, _, _, ok := l.n.core.terms.Leads(l.n.units().of(l.Role))
	return ok && id == l.id
}

// Remaining returns how long this term lasts from now on without new evidence, unless it is given
// up: 0 if it is over. Evidence keeps arriving and renews it. Finish an action within this time,
// or guard it by the Token.
func (l Leadership) Remaining() time.Duration {
	if l.n == nil {
		return 0
	}
	id, v, at, leads := l.n.core.terms.Evidence(l.n.units().of(l.Role))
	if !leads || id != l.id {
		return 0
	}
	return l.n.set.threshold().left(at, v)
}

// leadContext is the context that Lead gives to its function. The driver ends the embedded
// context, but that may be too late: after a suspension the function may run before any goroutine
// of this package. So each method checks the clock first, and ends the context for everybody if
// the term is over, including goroutines that wait for Done and derived contexts.
//
// Value checks too, because context.Cause calls it before Err in Go 1.25.
type leadContext struct {
	context.Context
	of     Leadership
	cancel context.CancelCauseFunc
}

func (c *leadContext) look() {
	if c.Context.Err() == nil && !c.of.Valid() {
		c.cancel(ErrFenced)
		c.of.n.core.terms.Ring() // the driver may not know yet
	}
}

func (c *leadContext) Err() error {
	c.look()
	return c.Context.Err()
}

func (c *leadContext) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

func (c *leadContext) Value(key any) any {
	c.look()
	return c.Context.Value(key)
}
