package fence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Term is one term of a leader. neli.Leadership is one.
type Term interface {
	// Valid reports whether exactly this term lasts at this instant. neli.IsLeaderOf is no
	// substitute, because it is also true if the process leads the role in another term.
	Valid() bool
}

// How long an attempt to initialise may take. The first attempts are short: a client repeats its
// request by itself as long as the broker tells it to, and if the term ends meanwhile, each
// repetition aborts the rightful leader's open transaction. For a client that needs longer to
// connect, an attempt that times out doubles the time of the next one.
const (
	leastPatience = 100 * time.Millisecond
	mostPatience  = 5 * time.Second
)

// The pause between attempts.
const (
	leastPause = 10 * time.Millisecond
	mostPause  = time.Second
)

// Transactions calls work with a fresh, initialised producer. It calls work again with another
// producer whenever the client was refused and the term lasts. Once work has been called, no
// transaction of an earlier term commits any more.
//
// An error does not mean that nothing was committed, nor that a refused leader has lost its role.
// Readers without isolation.level=read_committed may see a former leader's records. work must read
// its state anew each time: get the end offsets with isolation level read_uncommitted once work has
// been called, then consume with read_committed until the position has reached them. (The
// last stable offset may lie before the role's own committed records while another role's
// transaction is open.)
//
// Call it at once when the term begins, even if there is nothing to write, with the context that
// neli.Lead gives to its function. open returns a new client for the role's TransactionalID each
// time; a client that was made before the term, or was used before, fences nobody. Brokers must
// verify transactions (ErrUnverified). __transaction_state needs replicas, min.insync.replicas=2
// and no unclean leader election: if it loses records, terms are not fenced.
//
// It returns what work returns, unless that wraps ErrRefused. It also returns the error of open,
// and a client's error that wraps ErrPermanent. It asks whether the term lasts before each attempt,
// and between init and work. If the term is over, the error wraps ErrStale; if ctx has ended, it
// wraps the context's cause. work runs on the calling goroutine, and the producer is closed when
// work returns.
func Transactions[R any](ctx context.Context, term Term, open func() (Client[R], error), work func(ctx context.Context, p *Producer[R]) error) error {
	t := &transactions[R]{term: term, open: open, patience: leastPatience, pause: backoff.NewExponentialBackOff()}
	t.pause.InitialInterval, t.pause.MaxInterval = leastPause, mostPause
	defer t.close()
	for at := ask; ; {
		var err error
		switch at {
		case ask, check:
			err = t.lasts(ctx)
		case initialise:
			err = t.initialise(ctx)
		case begin:
			t.producer = &Producer[R]{client: t.client, at: begin}
			if err = t.run(ctx, work); err == nil {
				return nil
			}
		default:
			return fmt.Errorf("fence: step %d is none of Transactions", at)
		}
		if at = after(at, err == nil); at == stop || err != nil && !errors.Is(err, ErrRefused) {
			return err
		}
		if err != nil {
			t.rest(ctx)
		}
	}
}

// transactions is one call of Transactions.
type transactions[R any] struct {
	term     Term
	open     func() (Client[R], error)
	client   Client[R]
	producer *Producer[R]
	patience time.Duration
	pause    *backoff.ExponentialBackOff
}

// lasts returns why nothing more may be done in this term, or nil if the term lasts. It asks Valid
// before the context: once Valid is false, the context that Lead gives has ended, and the error has
// its cause.
func (t *transactions[R]) lasts(ctx context.Context) error {
	valid := t.term.Valid()
	ended := ctx.Err()
	switch {
	case !valid && ended != nil:
		return fmt.Errorf("%w: %w", ErrStale, context.Cause(ctx))
	case !valid:
		return ErrStale
	case ended != nil:
		return context.Cause(ctx)
	}
	return nil
}

// initialise makes and initialises a new client. The former one must be closed.
func (t *transactions[R]) initialise(ctx context.Context) error {
	client, err := t.open()
	if err != nil {
		return err
	}
	t.client = client
	limited, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	if err = client.Init(limited); err == nil {
		return nil
	}
	if errors.Is(limited.Err(), context.DeadlineExceeded) {
		t.patience = min(2*t.patience, mostPatience)
	}
	return refused(initialise, err)
}

// run calls work with the new producer. If work took longer than the longest pause, the next pause is short again.
func (t *transactions[R]) run(ctx context.Context, work func(context.Context, *Producer[R]) error) error {
	began := time.Now()
	err := work(ctx, t.producer)
	if time.Since(began) > mostPause {
		t.pause.Reset()
	}
	return err
}

// rest closes the client, so that nothing of it goes on in the background, and pauses before the
// next attempt, but not after ctx has ended.
func (t *transactions[R]) rest(ctx context.Context) {
	t.close()
	select {
	case <-time.After(t.pause.NextBackOff()):
	case <-ctx.Done():
	}
}

func (t *transactions[R]) close() {
	if t.client != nil {
		t.client.Close()
		t.client = nil
	}
}
