package fence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
)

// TransactionalID returns the transactional.id of a role's leader: neli/<group>/<role>. It is the
// same for all members and all terms, so that each term fences the ones before it. It must not be
// used for anything else.
//
// A principal needs WRITE on it; an ACL for the prefix "neli/<group>/" covers all roles.
func TransactionalID(group string, role int) string {
	return "neli/" + group + "/" + strconv.Itoa(role)
}

// Client is a Kafka client's transactional producer. Package fence/confluent and module franz have
// one each. R is the client's type for a record. One goroutine at a time uses a Client, for one
// TransactionalID. A Client is new: nothing was done with it yet.
//
// An error that another client would get as well wraps ErrPermanent. After any other error the
// outcome is unknown.
type Client[R any] interface {
	// Init fences all earlier clients of this transactional.id, and aborts their open transactions.
	// It returns when ctx ends, and may go on in the background only until Close. It sends at most
	// 15 requests, because each of them aborts the rightful leader's open transaction if the
	// sender's term is over.
	Init(ctx context.Context) error
	// Begin begins a transaction.
	Begin() error
	// Produce writes records to the transaction. It returns nil when the brokers have
	// acknowledged every one of them. It returns when ctx ends, and may go on in the
	// background only until Close.
	Produce(ctx context.Context, records []R) error
	// Commit commits the transaction. It returns nil only if the coordinator has confirmed the commit.
	Commit(ctx context.Context) error
	// Close ends the client and everything that it does in the background. It does not abort. A
	// commit whose context has ended may go on after Close, for a limited time. Like a commit that
	// is still in flight to the broker, it can succeed only before the next Init.
	Close()
}

// Producer writes for the work of a term. Transactions makes it.
type Producer[R any] struct {
	client Client[R]
	at     step
	err    error // why it can no longer be used
	busy   atomic.Bool
}

var errBusy = errors.New("fence: Commit was called while another Commit was under way")

// Commit writes records in a transaction of their own. It begins the transaction, writes, waits for
// the acknowledgement of every record, and only then commits.
//
// If it returns nil, all the records are committed, and readers with isolation.level=read_committed
// see all of them. After an error nobody knows whether they are committed. The error wraps
// ErrRefused or ErrPermanent, the producer can no longer be used, and each later call returns the
// same error: return it from work. Without records Commit writes nothing.
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

// refused classifies an error of a client. An error that is not permanent wraps ErrRefused.
func refused(at step, err error) error {
	doing := map[step]string{initialise: "init", begin: "begin", produce: "produce", commit: "commit"}[at]
	if errors.Is(err, ErrPermanent) || errors.Is(err, ErrRefused) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrRefused, doing, err)
}
