package burrow

import (
	"context"
	"errors"
	"sync"

	"github.com/goneli/neli"
)

// Lock makes the leadership of a Neli's only role a lock, for code that needs Lock and Unlock.
//
// When Lock returns nil, this process led at that moment. That says nothing about later: while the code after
// Lock runs, the lease may be lost and another process may get the lock. So the code must check Err of Context
// before each thing that it does. An action that must be safe even if the process is suspended after this
// check has to carry the token.
//
// Nothing else may drive the Neli meanwhile (Pulse, Background, Lead).
type Lock struct {
	Neli *neli.Neli

	mu     sync.Mutex
	term   context.Context // nil: not locked
	unlock func() error
}

var (
	errLocked    = errors.New("locked already")
	errNotLocked = errors.New("not locked")
)

// Lock waits until this process leads. It returns an error if this Lock is already locked, or if the Neli is
// closed or has failed.
func (k *Lock) Lock() error {
	if k.Context() != nil {
		return errLocked
	}
	leads, ended := make(chan context.Context), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- k.Neli.Lead(ctx, func(term context.Context, _ neli.Leadership) error {
			select {
			case leads <- term:
			case <-term.Done():
				return nil
			}
			<-ctx.Done() // keeps the lease until Unlock, unless it is lost
			return nil
		})
	}()
	select {
	case term := <-leads:
		k.mu.Lock()
		k.term, k.unlock = term, func() error { cancel(); return <-ended }
		k.mu.Unlock()
		return nil
	case err := <-ended:
		cancel()
		return err
	}
}

// Unlock gives the lease up, unless it is already lost.
func (k *Lock) Unlock() error {
	k.mu.Lock()
	unlock := k.unlock
	k.term, k.unlock = nil, nil // another Unlock must not wait for the same end
	k.mu.Unlock()
	if unlock == nil {
		return errNotLocked
	}
	return unlock()
}

// Context returns a context that ends when the lock is lost or given up; context.Cause says which. Its Err
// checks the clock, so it is right even after a suspension. Context returns nil while this Lock is not
// locked.
func (k *Lock) Context() context.Context {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.term
}
