package burrow

import (
	"context"
	"errors"
	"sync"

	"github.com/goneli/neli"
)

// Lock is a lock of one role of a Neli, for code that wants Lock and Unlock.
//
// Lock returning nil says that this process led at that moment, and nothing of later: the
// lease may be lost, and another process have the lock, while the code behind Lock goes on. It must
// ask Err of Context before each thing that it does. What must be safe even between the question
// and the deed carries the token.
//
// Nothing else may drive the Neli meanwhile (Pulse, Background, Lead), and it has one role.
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

// Lock waits until this process leads. It returns an error if this Lock is locked, or if the
// Neli is closed or has failed.
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
			<-ctx.Done() // the lease is kept until Unlock, unless it is lost
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

// Unlock gives the lease up, if it is not lost already.
func (k *Lock) Unlock() error {
	k.mu.Lock()
	unlock := k.unlock
	k.mu.Unlock()
	if unlock == nil {
		return errNotLocked
	}
	err := unlock()
	k.mu.Lock()
	k.term, k.unlock = nil, nil
	k.mu.Unlock()
	return err
}

// Context ends when the lock is lost or given up; context.Cause tells how. Its Err asks the clock,
// so that it is right after a suspension, too. It is nil while this Lock is not locked.
func (k *Lock) Context() context.Context {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.term
}
