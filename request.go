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

// Request is a wish that whoever holds a role let go of it: in favour of another member, or
// of any. Ask sends it; Config.Requests decides on it.
type Request struct {
	// Role is the role that is meant, by its holder of the moment.
	Role int
	// To is the Member.ID, or the Name if no other has that, of the member that is to lead
	// the role next: the holder does what Transfer does.
	To string
	// StepDown asks the holder to do what StepDown does: it gives up everything that it
	// leads, not this role only, and claims nothing for a while. Either this or To is set.
	StepDown bool

	// By and Name are the Member.ID and Config.Name of the process that asks, as it says
	// itself: whoever may write to the topic may say anything. Set in what Config.Requests
	// is given; Ask ignores them.
	By, Name string
}

// Ask asks the holder of a role to hand it over or to step down, and returns nil once it
// has done so. Any process may ask, an observer (Config.Observer), too: it is all that an observer
// ever writes, and takes WRITE on the topic. It is for people and tools; who leads a role itself calls
// Transfer or StepDown.
//
// The holder is whoever is known to hold the role when Ask is called; where nothing is
// known yet Ask waits until it is. It decides by its Config.Requests, and refuses if it has
// none, so asking promises nothing. The request is a record in the topic and plays no part in
// safety: what follows is an orderly hand-over, or nothing.
//
// Errors, wrapped with what was asked for: ErrRefused, with the holder's reason; ErrVacant,
// when nobody is known to hold the role; ErrLeadsAlready, when the member that is to lead it
// does so, of which the holder is not told; ErrNotDone, when the holder accepted and could not do
// it, or lost the role meanwhile; ErrNoAnswer, when the holder has said nothing for 30 s, as
// one does that is cut off, or takes that long to decide, and after three seconds if this process
// may not write, even where it is not known who holds the role; ErrClosed or what ended this Neli; the
// cause of ctx. Neither ErrNoAnswer nor the end of ctx calls the request off: it may be carried
// out later on, in the term in which the holder has read it. A holder whose version knows no
// requests refuses or says nothing. A request may be put to the holder's application
// twice, though seldom.
//
// It needs exclusive mode, and a holder with Open nomination unless StepDown is asked for. At most
// 16 requests of a Neli may be under way. Like Transfer it must not be called from a
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
	if err := n.outcome(n.core.elector.Ask(ctx, q)); err != nil {
		return n.set.secrets.Err(fmt.Errorf("neli: Ask: %s: %w", what, err))
	}
	return nil
}

// checkRequest says all that is wrong with a request.
func (n *Neli) checkRequest(ctx context.Context, r Request) error {
	if ctx == nil {
		return errors.New("neli: Ask: ctx is nil")
	}
	if n.set.mode != Exclusive {
		return errors.New("neli: Ask: needs Mode Exclusive")
	}
	var f faults
	roles := int(n.roles.Load())
	f.check(r.Role >= 0 && r.Role < roles, "Request.Role", r.Role, fmt.Sprintf("must be between 0 and %d, below Roles", roles-1))
	f.check(r.StepDown != (r.To != ""), "Request.To", r.To, "must be set, unless StepDown is, and not with it")
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

// serveRequests begins to put requests to Config.Requests, if there is one. The function that
// it returns ends that, and waits until it has ended.
func (n *Neli) serveRequests() (stop func()) {
	if n.core.elector == nil || n.set.requests == nil || n.set.observer {
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

// serve puts one request to the application, and does what is asked for if that may be.
func (n *Neli) serve(ctx context.Context, q elector.Request) {
	log := n.set.logger.With(q.Describe()...)
	r := Request{Role: q.Role, To: q.To, StepDown: q.Verb == lease.StepDown, By: q.By, Name: q.Name}
	if err := n.set.requests(r); err != nil {
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
	case !n.IsLeaderOf(q.Role): // by now
	case r.StepDown:
		err = n.StepDown(ctx)
	default:
		err = n.handTo(ctx, q.Role, q.To)
	}
	if err != nil {
		log.Info("request not carried out", "error", err)
		// The asker wraps this with what it asked for.
		n.core.elector.Answer(q, lease.Failed, n.set.secrets.Text(strings.TrimPrefix(err.Error(), "neli: ")))
		return
	}
	n.core.elector.Answer(q, lease.Done, "")
}
