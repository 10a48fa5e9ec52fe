package neli

import "context"

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
