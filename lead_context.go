package neli

import "context"

// leadContext is what Lead gives to its function. The embedded context ends when the driver
// ends it. That may come too late: after a suspension the function may run before any
// goroutine of this package does. So each question put to it looks at the clock first, and
// ends it for everybody if the term is over: for who waits in Done, and for the contexts that
// are derived from it.
//
// Value looks, too: context.Cause asks for the cause by it, before Err in Go 1.25.
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
