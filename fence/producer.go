package fence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
)

// TransactionalID returns the transactional.id of a role's leader: neli/<group>/<role>. It
// is the same for all members and all terms, which is what lets each term fence the ones
// before it. It must not be used for anything else.
//
// A principal needs WRITE on it; an ACL for the prefix "neli/<group>/" covers all roles.
func TransactionalID(group string, role int) string {
	return "neli/" + group + "/" + strconv.Itoa(role)
}

// Client is a Kafka client's transactional producer, as package fence/confluent and module
// franz have it. R is the client's type for a record. It is used by one goroutine at a
// time, for one TransactionalID, and is new: nothing was done with it.
//
// An error that another client would meet as well wraps ErrPermanent. All others mean that
// the outcome is unknown.
type Client[R any] interface {
	// Init fences all earlier clients of this transactional.id, and aborts what they have
	// open. It returns when ctx ends, and may go on in the background only until Close. It
	// sends at most 15 requests: each of them aborts what the rightful leader has open, if
	// the term that sends it is over.
	Init(ctx context.Context) error
	// Begin begins a transaction.
	Begin() error
	// Produce writes records to the transaction. It returns nil when the brokers have
	// acknowledged every one of them. It returns when ctx ends, and may go on in the
	// background only until Close.
	Produce(ctx context.Context, records []R) error
	// Commit commits. It returns nil only if the coordinator has said that the transaction
	// is committed.
	Commit(ctx context.Context) error
	// Close ends the client and everything that it does in the background. It does not
	// abort. A commit whose context has ended may go on after Close, for a limited time: it
	// can succeed only before the next Init, as one that is still on its way to the broker.
	Close()
}

// Producer is what the work of a term writes with. Transactions makes it.
type Producer[R any] struct {
	client Client[R]
	at     step
	err    error // why it is of no use any more
	busy   atomic.Bool
}

var errBusy = errors.New("fence: Commit was called while another Commit was under way")

// Commit writes records in a transaction of their own, and commits it. It begins, writes,
// waits for the acknowledgement of every record, and only then commits.
//
// On nil all the records are committed, and readers with isolation.level=read_committed
// see all of them. On an error they are committed or not: nobody knows. The error wraps
// ErrRefused or ErrPermanent, the producer is of no use any more, and each later call
// returns the same error: return it from work. Without records Commit does nothing.
//
// It must not be called concurrently. If ctx ends, the outcome is unknown as well.
func (p *Producer[R]) Commit(ctx context.Context, records ...R) error {
	if !p.busy.CompareAndSwap(false, true) {
		return errBusy
	}
	defer p.busy.Store(false)
	if p.err != nil || len(records) == 0 {
		return p.err
	}
	for {
		var err error
		at := p.at
		switch at {
		case begin:
			err = p.client.Begin()
		case produce:
			err = p.client.Produce(ctx, records)
		case commit:
			err = p.client.Commit(ctx)
		default:
			err = errors.New("it is not initialised")
		}
		if p.at = after(at, err == nil); err != nil {
			p.err = refused(at, err)
			return p.err
		}
		if at == commit {
			return nil
		}
	}
}

// refused tells an error of a client. One that is not for good wraps ErrRefused.
func refused(at step, err error) error {
	doing := map[step]string{initialise: "init", begin: "begin", produce: "produce", commit: "commit"}[at]
	if errors.Is(err, ErrPermanent) || errors.Is(err, ErrRefused) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrRefused, doing, err)
}
