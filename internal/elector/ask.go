package elector

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Requests of this process to others that hold something. One is sent again until it is
// answered, and while it is being carried out, as records and answers may be lost; its
// addressee tells it by its number.

// ErrUnknown: it is not known yet who holds the role.
var ErrUnknown = errors.New("nothing is known yet of who holds the role")

var (
	errOwnRole   = errors.New("this process holds the role itself: call Transfer or StepDown")
	errTooMany   = fmt.Errorf("%d requests are under way", maxAsks)
	errElsewhere = errors.New("it has another holder by now, or none")
)

const (
	// maxAsks is how many requests may be under way at a time.
	maxAsks = 16
	// askEvery is how often a request is sent until it is answered, and followEvery while
	// it is being carried out.
	askEvery    = time.Second
	followEvery = 5 * time.Second
	// askLimit is how long a holder may say nothing.
	askLimit = 30 * time.Second
	// goneFor is how long a role must have another holder, or none, until that ends a
	// request: the holder's word, which is on its way, says more.
	goneFor = 2 * time.Second
)

// asking is a request of this process's.
type asking struct {
	Request
	holder   string // the process that is asked
	log      int    // where it was sent last
	offset   int64  // and read back; −1: it was not yet
	sent     clock.Time
	heard    clock.Time // when the holder said something last, or it was sent first
	gone     clock.Time // since when the role has another holder, or none; 0: it has not
	accepted bool
	tries    int
	failed   error // of the newest record, if it may not be in the log
}

// Ask sends a request to the process that holds the role, and returns a number by which its
// Outcome is known. The error is ErrUnknown, ErrVacant, ErrLeadsAlready, or says what is wrong with it.
func (n *Node) Ask(r Request, now clock.Instant) (id int, err error) {
	if len(n.parts) == 0 {
		return 0, ErrUnknown
	}
	p, u := n.local(r.Role)
	switch token, g := n.standing(p, u, now); {
	case token == unknownToken:
		return 0, ErrUnknown
	case token == vacantToken:
		return 0, ErrVacant
	case g.Session.Process == n.set.Process:
		return 0, errOwnRole
	case len(n.asks) >= maxAsks:
		return 0, errTooMany
	case r.Verb == lease.Transfer && n.is(g, r.To):
		return 0, ErrLeadsAlready
	default:
		n.moves.lastID++
		r.id = uint64(n.moves.lastID)
		a := &asking{Request: r, holder: g.Session.Process, heard: now.Mono}
		n.asks = append(n.asks, a)
		n.sendAsk(a, now)
		return n.moves.lastID, nil
	}
}

// is reports whether a holder is the member that a request names: by its id, or by its name if no
// other member has that.
func (n *Node) is(g lease.Grantee, to string) bool {
	if to == g.Session.Process {
		return true
	}
	for id, m := range n.members.by {
		if id == to || m.name == to && id != g.Session.Process {
			return false
		}
	}
	return to == g.Name
}

// sendAsk sends a request, or sends it again: in the log that has the role or, where all logs
// have all roles, in one after the other.
func (n *Node) sendAsk(a *asking, now clock.Instant) {
	p, _ := n.local(a.Role)
	if n.quorum != nil {
		p = n.logs[(n.reachable()+a.tries)%len(n.logs)]
	}
	a.tries++
	a.log, a.offset, a.sent = p.index, -1, now.Mono
	if !p.begun {
		return
	}
	r := n.word(p, lease.Ping, now)
	r.To, r.Request = a.holder, &lease.Request{ID: a.id, Role: a.Role, Verb: a.Verb, To: a.To}
	n.append(p, now, r)
}

// asked takes note of where an own request is in its log.
func (n *Node) asked(p *partition, o int64, r *lease.Record) {
	for _, a := range n.asks {
		if a.id == r.Request.ID && a.log == p.index {
			a.offset, a.failed = o, nil
		}
	}
}

// askFailed takes note that an own request may not be in the log.
func (n *Node) askFailed(r *lease.Record, err error) {
	for _, a := range n.asks {
		if a.id == r.Request.ID {
			a.failed = err
		}
	}
}

// replied takes a Pong to this process, and reports whether it is about a request. Only of the
// process that was asked an answer counts; one that says nothing of the request does not know
// what a request is.
func (n *Node) replied(p *partition, r *lease.Record, now clock.Instant) bool {
	i := slices.IndexFunc(n.asks, func(a *asking) bool {
		if a.holder != r.Session.Process {
			return false
		}
		if r.Answer == nil {
			return a.log == p.index && a.offset >= 0 && a.offset == r.Ping
		}
		return a.id == r.Answer.ID
	})
	if i < 0 {
		return r.Answer != nil
	}
	a := n.asks[i]
	a.heard = now.Mono
	err := error(nil)
	switch {
	case r.Answer == nil:
		err = fmt.Errorf("%w: the holder's version knows no requests", ErrRefused)
	case r.Answer.Stage == lease.Accepted:
		a.accepted = true
		return true
	case r.Answer.Stage == lease.Refused:
		err = fmt.Errorf("%w: %s", ErrRefused, Harmless(r.Answer.Text))
	case r.Answer.Stage == lease.Failed:
		err = fmt.Errorf("%w: %s", ErrNotDone, Harmless(r.Answer.Text))
	case r.Answer.Stage != lease.Done:
		return true
	}
	n.concludeAsk(a, err)
	n.asks = slices.Delete(n.asks, i, i+1)
	return true
}

func (n *Node) concludeAsk(a *asking, err error) {
	n.ready.Outcomes = append(n.ready.Outcomes, Outcome{int(a.id), err})
}

// pursue sends requests again, and ends those to which nobody answers, or whose role has
// another holder by now.
func (n *Node) pursue(now clock.Instant) {
	n.asks = slices.DeleteFunc(n.asks, func(a *asking) bool {
		p, u := n.local(a.Role)
		token, g := n.standing(p, u, now)
		switch held := token >= 0 && g.Session.Process == a.holder; {
		case held || token == unknownToken:
			a.gone = 0
		case a.gone == 0:
			a.gone = now.Mono
		}
		switch {
		case a.gone != 0 && now.Mono >= a.gone.Add(goneFor):
			n.concludeAsk(a, a.verdict(token, g))
			return true
		case now.Mono >= a.until():
			n.concludeAsk(a, a.unanswered())
			return true
		case a.gone == 0 && now.Mono >= a.again():
			n.sendAsk(a, now)
		}
		return false
	})
}

// again is when a request is to be sent again.
func (a *asking) again() clock.Time {
	if a.accepted {
		return a.sent.Add(followEvery)
	}
	return a.sent.Add(askEvery)
}

// until is how long a holder that says nothing is waited for.
func (a *asking) until() clock.Time { return a.heard.Add(askLimit) }

// pursueDue is when pursue has something to do, if nothing changes.
func (n *Node) pursueDue() clock.Time {
	next := clock.Mono(clock.Never)
	for _, a := range n.asks {
		if a.gone != 0 {
			next = min(next, a.gone.Add(goneFor), a.until())
		} else {
			next = min(next, a.again(), a.until())
		}
	}
	return next
}

// verdict tells what has become of a request whose holder says nothing and holds the role no
// more.
func (a *asking) verdict(token int64, g lease.Grantee) error {
	switch {
	case a.Verb == lease.Transfer && token >= 0 && (g.Session.Process == a.To || g.Name == a.To):
		return nil
	case a.Verb == lease.StepDown && a.accepted:
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotDone, errElsewhere)
}

func (a *asking) unanswered() error {
	if a.failed != nil {
		return fmt.Errorf("%w for %v, and the log does not take the request: %w", ErrNoAnswer, askLimit, a.failed)
	}
	return fmt.Errorf("%w for %v", ErrNoAnswer, askLimit)
}

// GiveUpAsk forgets a request, and says how far it had come.
func (n *Node) GiveUpAsk(id int) string {
	i := slices.IndexFunc(n.asks, func(a *asking) bool { return a.id == uint64(id) })
	if i < 0 {
		return "its outcome is known"
	}
	a := n.asks[i]
	n.asks = slices.Delete(n.asks, i, i+1)
	switch {
	case a.accepted:
		return "the holder has accepted, and has not said that it is done"
	case a.failed != nil:
		return "the log does not take it: " + a.failed.Error()
	}
	return "the holder has not answered"
}
