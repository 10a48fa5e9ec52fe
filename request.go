package neli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/lease"
)

// Request asks the holder of a role to do what Transfer, StepDown or Rebalance does. Ask sends it;
// Config.Requests decides on it.
type Request struct {
	// Role is the role whose current holder is asked.
	Role int
	// To names the member that is to lead the role next: its Member.ID, or its Name if no other
	// member has that name. The holder does what Transfer does.
	To string
	// StepDown asks the holder to do what StepDown does: to give up all roles that it leads, not
	// only this one, and to claim nothing for a while. Set one of To, StepDown and Rebalance.
	StepDown bool
	// Rebalance asks the holder to do what Rebalance does: to share out now, of all roles that it leads,
	// those that exceed its share. Ask may return as soon as this role has moved.
	Rebalance bool

	// RequesterID and RequesterName are the Member.ID and Config.Name of the requester, as the
	// requester states them: any principal that can write to the topic can state anything. They are
	// set in the Request that Config.Requests receives. Ask ignores them.
	RequesterID, RequesterName string
}

// Ask asks the holder of a role to hand it over, to step down or to rebalance, and returns nil once the holder
// has done so. Any process may ask, including an observer, which needs WRITE on the topic for it.
// Ask is for people and tools; the leader of a role calls Transfer or StepDown itself.
//
// The holder is the process known to hold the role when Ask is called. If nothing is known yet,
// Ask waits until it is. The holder decides by its Config.Requests, and refuses if it has none.
// The request is a record in the topic and does not affect safety: it leads to an orderly
// hand-over, or to nothing.
//
// Errors, wrapped with the request:
//
//   - ErrRefused, with the holder's reason;
//   - ErrVacant, if no process is known to hold the role;
//   - ErrLeadsAlready, if the chosen member leads the role; no request is sent then;
//   - ErrNotDone, if the holder accepted, but could not do it or has lost the role;
//   - ErrNoAnswer, if the holder has not answered for 30 s: it is cut off, or takes that long to decide.
//     If this process may not write to the topic, ErrNoAnswer comes after three seconds;
//   - ErrClosed, or the error that ended this Neli; the cause of ctx.
//
// Neither ErrNoAnswer nor the end of ctx withdraws the request. It may still be carried out later,
// in the term in which the holder has read it. In rare cases the holder's application gets a
// request twice. A holder of a version without requests refuses or does not answer.
//
// A Neli can have at most 16 requests in progress. Like Transfer, Ask must not be called from a
// barrier or task.
func (n *Neli) Ask(ctx context.Context, r Request) error {
	if err := n.checkRequest(ctx, r); err != nil {
		return err
	}
	q := elector.Request{Role: r.Role, Verb: lease.Transfer, To: r.To}
	what := fmt.Sprintf("role %d to %q", r.Role, r.To)
	if r.StepDown {
		q.Verb, what = lease.StepDown, fmt.Sprintf("role %d: step down", r.Role)
	}
	if r.Rebalance {
		q.Verb, what = lease.Rebalance, fmt.Sprintf("role %d: rebalance", r.Role)
	}
	if err := n.outcome(n.core.elector.Ask(ctx, q)); err != nil {
		return n.set.secrets.Err(fmt.Errorf("neli: Ask: %s: %w", what, err))
	}
	return nil
}

// checkRequest returns all faults of a request.
func (n *Neli) checkRequest(ctx context.Context, r Request) error {
	if ctx == nil {
		return errors.New("neli: Ask: ctx is nil")
	}
	if n.set.Mode != Exclusive {
		return errors.New("neli: Ask: needs Mode Exclusive")
	}
	var f faults
	roles := int(n.roles.Load())
	f.check(r.Role >= 0 && r.Role < roles, "Request.Role", r.Role, fmt.Sprintf("must be between 0 and %d, below Roles", roles-1))
	f.check(r.To != "" || r.StepDown || r.Rebalance, "Request.To", r.To, "must be set, unless StepDown or Rebalance is")
	f.check(r.To == "" || !r.StepDown && !r.Rebalance, "Request.To", r.To, "must not be set with StepDown or Rebalance")
	f.check(!r.StepDown || !r.Rebalance, "Request.Rebalance", r.Rebalance, "must not be set with StepDown")
	f.check(len(r.To) <= maxNameLength && utf8.ValidString(r.To), "Request.To", r.To,
		fmt.Sprintf("must be at most %d bytes of UTF-8", maxNameLength))
	if len(f.list) > 0 {
		return fmt.Errorf("neli: Ask: %w", errors.Join(f.list...))
	}
	if err := n.ended(); err != nil {
		return fmt.Errorf("neli: Ask: %w", err)
	}
	return nil
}

// serveRequests starts the goroutine that puts requests to Config.Requests, if that is set. stop
// ends the goroutine and waits for it.
func (n *Neli) serveRequests() (stop func()) {
	if n.core.elector == nil || n.set.Requests == nil || n.set.Observer {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for {
			q, ok := n.core.elector.NextRequest(ctx)
			if !ok {
				return
			}
			n.serve(ctx, q)
		}
	})
	return func() { cancel(); work.Wait() }
}

var errRequestsGoexit = errors.New("Config.Requests ended its goroutine")

// decide calls Config.Requests. If that ends its goroutine, as t.FailNow does, it has refused; the
// goroutine that serves requests goes on.
func (n *Neli) decide(r Request) error {
	err := errRequestsGoexit
	var call sync.WaitGroup
	defer n.slow("Config.Requests has not returned: other requests wait", "role", r.Role)()
	call.Go(func() { err = n.set.Requests(r) })
	call.Wait()
	return err
}

// serve puts one request to the application, and carries it out if the application accepts it.
func (n *Neli) serve(ctx context.Context, q elector.Request) {
	log := n.set.logger.With(q.Describe()...)
	r := Request{Role: q.Role, To: q.To, StepDown: q.Verb == lease.StepDown, Rebalance: q.Verb == lease.Rebalance, RequesterID: q.By, RequesterName: q.Name}
	if err := n.decide(r); err != nil {
		log.Info("request refused", "error", err)
		n.core.elector.Answer(q, lease.Refused, n.set.secrets.Text(err.Error()))
		return
	}
	log.Info("request accepted")
	if !n.core.elector.Accept(q) {
		log.Info("request not carried out", "error", "it is about an earlier term")
		return
	}
	err := ErrNotLeader
	switch {
	case !n.IsLeaderOf(q.Role): // not any more
	case r.StepDown:
		err = n.StepDown(ctx)
	case r.Rebalance:
		_, err = n.Rebalance(ctx)
	default:
		err = n.handTo(ctx, q.Role, q.To)
	}
	if err != nil {
		log.Info("request not carried out", "error", err)
		// The requester wraps this text with its request.
		n.core.elector.Answer(q, lease.Failed, n.set.secrets.Text(strings.TrimPrefix(err.Error(), "neli: ")))
		return
	}
	n.core.elector.Answer(q, lease.Done, "")
}
