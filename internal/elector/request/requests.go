package request

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
)

// Requests are what processes ask of each other beside the lease: requests to the holder of a
// role, the inbox of requests to this process (inbox.go), and calls, which ask all members to
// announce themselves. A request or call is repeated until its outcome is known, since records
// may be lost; a request's addressee recognises it by its number.
//
// The caller passes in the state of holders and logs, sends the letters and reports the outcomes.
type Requests struct {
	inbox inbox
	asks  []*asking
	calls []*calling
	last  int // the newest number
	out   []Letter
	ended []Outcome
}

// Outcome is the end of a Transfer, Rebalance, request or call.
type Outcome struct {
	ID  int
	Err error
}

// Letter is a Ping or a Pong to be appended to a log.
type Letter struct {
	Log     int
	Kind    lease.Kind
	To      string
	Ping    int64 // of a Pong: the offset of the Ping that it answers
	Request *lease.Request
	Answer  *lease.Answer

	Offer    *lease.Offer
	Prepared *lease.Prepared
}

// route chooses the log for the next letter about a role, or about none (AnyRole); tries is the
// number of earlier letters.
type route func(role, tries int) (log int)

const AnyRole = -1

// ErrUnknown is the error of Ask while the holder of the role is not known.
var ErrUnknown = errors.New("nothing is known yet of who holds the role")

var (
	errTooMany   = fmt.Errorf("%d requests are under way", MaxAsks)
	errElsewhere = errors.New("it has another holder by now, or none")
)

const (
	// MaxAsks limits the requests in progress, and the calls.
	MaxAsks = 16
	// askEvery is the interval at which a request is sent until it is answered, and
	// followEvery while it is being carried out.
	askEvery    = time.Second
	followEvery = 5 * time.Second
	// askLimit is how long a holder may stay silent, and deniedLimit how long the logs may
	// refuse this process's letters.
	askLimit    = 30 * time.Second
	deniedLimit = 3 * time.Second
	// goneFor is how long a role must have another holder, or none, before that ends a
	// request. The former holder's answer says more, and may be in flight.
	goneFor = 2 * time.Second
)

// asking is a request of this process.
type asking struct {
	Request
	holder   string // the addressee
	log      int    // the log of the last letter
	offset   int64  // where the letter was read back; −1: not yet
	sent     clock.Mono
	heard    clock.Mono // the holder's last answer; at first the time of the request
	gone     clock.Mono // since when the role has another holder, or none; 0: it has the same
	accepted bool
	tries    int
	rejection
}

// calling is a call of this process that was not read back yet. The caller does not announce
// itself, so others do not count it as a member. An observer that has just started learns by a
// call which members exist.
type calling struct {
	id    int
	log   int // the log of the last letter
	sent  clock.Mono
	tries int
	rejection
}

// rejection is why the last letter of a request or call may not be in a log.
type rejection struct {
	failed error
	denied clock.Mono // since when every log tried has refused it; 0: another reason, or none
}

func (j *rejection) note(err error, now clock.Instant) {
	j.failed = err
	switch {
	case !errors.Is(err, ErrDenied):
		j.denied = 0
	case j.denied == 0:
		j.denied = now.Mono
	}
}

// until is when letters that every log refuses are given up.
func (j *rejection) until() clock.Mono {
	if j.denied == 0 {
		return clock.Never
	}
	return j.denied.Add(deniedLimit)
}

// pause is the time between two letters. If one log has refused a letter another may accept it;
// each of seven logs is tried within deniedLimit.
func (j *rejection) pause(usual time.Duration) time.Duration {
	if j.denied == 0 {
		return usual
	}
	return deniedLimit / 8
}

// Number returns the next number of an Outcome.
func (rs *Requests) Number() int {
	rs.last++
	return rs.last
}

// Take returns the letters to send and the outcomes to report, and begins new lists.
func (rs *Requests) Take() (out []Letter, ended []Outcome) {
	out, ended = rs.out, rs.ended
	rs.out, rs.ended = nil, nil
	return out, ended
}

// Ask sends a request to the process that holds the role.
func (rs *Requests) Ask(r Request, holder string, to route, now clock.Instant) (id int, err error) {
	if len(rs.asks) >= MaxAsks {
		return 0, errTooMany
	}
	r.id = uint64(rs.Number())
	a := &asking{Request: r, holder: holder, heard: now.Mono}
	rs.asks = append(rs.asks, a)
	rs.sendAsk(a, to, now)
	return rs.last, nil
}

func (rs *Requests) sendAsk(a *asking, to route, now clock.Instant) {
	a.log, a.offset, a.sent = to(a.Role, a.tries), -1, now.Mono
	a.tries++
	rs.out = append(rs.out, Letter{Log: a.log, Kind: lease.Ping, To: a.holder,
		Request: &lease.Request{ID: a.id, Role: a.Role, Verb: a.Verb, To: a.To}})
}

// Call sends a call to one log after the other until it is read back: all members read all logs.
func (rs *Requests) Call(to route, now clock.Instant) (id int, err error) {
	if len(rs.calls) >= MaxAsks {
		return 0, errTooMany
	}
	c := &calling{id: rs.Number()}
	rs.calls = append(rs.calls, c)
	rs.sendCall(c, to, now)
	return c.id, nil
}

func (rs *Requests) sendCall(c *calling, to route, now clock.Instant) {
	c.log, c.sent = to(AnyRole, c.tries), now.Mono
	c.tries++
	rs.out = append(rs.out, Letter{Log: c.log, Kind: lease.Ping, To: lease.Everyone})
}

// Back handles an own request or call that was read back at an offset. That ends a call, since the
// members read it too.
func (rs *Requests) Back(log int, o int64, r *lease.Record) {
	if r.To == lease.Everyone {
		rs.calls = slices.DeleteFunc(rs.calls, func(c *calling) bool {
			if c.log == log {
				rs.ended = append(rs.ended, Outcome{ID: c.id, Err: nil})
			}
			return c.log == log
		})
		return
	}
	for _, a := range rs.asks {
		if a.id == r.Request.ID && a.log == log {
			a.offset, a.rejection = o, rejection{}
		}
	}
}

// Failed handles an own request or call that may not be in its log.
func (rs *Requests) Failed(log int, r *lease.Record, err error, now clock.Instant) {
	if r.To == lease.Everyone {
		for _, c := range rs.calls {
			if c.log == log {
				c.note(err, now)
			}
		}
		return
	}
	for _, a := range rs.asks {
		if a.id == r.Request.ID {
			a.note(err, now)
		}
	}
}

// Replied handles a Pong to this process, and reports whether it is about a request. An answer
// counts only if it comes from the addressee. A process of a version without requests answers
// without mentioning one.
func (rs *Requests) Replied(log int, r *lease.Record, now clock.Instant) bool {
	i := slices.IndexFunc(rs.asks, func(a *asking) bool {
		if a.holder != r.Session.Process {
			return false
		}
		if r.Answer == nil {
			return a.log == log && a.offset >= 0 && a.offset == r.Ping
		}
		return a.id == r.Answer.ID
	})
	if i < 0 {
		return r.Answer != nil
	}
	a := rs.asks[i]
	a.heard = now.Mono
	err := error(nil)
	switch {
	case r.Answer == nil:
		err = fmt.Errorf("%w: the holder's version knows no requests", ErrRefused)
	case r.Answer.Stage == lease.Accepted:
		a.accepted = true
		return true
	case r.Answer.Stage == lease.Refused:
		err = fmt.Errorf("%w: %s", ErrRefused, roster.Harmless(r.Answer.Text))
	case r.Answer.Stage == lease.Failed:
		err = fmt.Errorf("%w: %s", ErrNotDone, roster.Harmless(r.Answer.Text))
	case r.Answer.Stage != lease.Done:
		return true
	}
	rs.ended = append(rs.ended, Outcome{int(a.id), err})
	rs.asks = slices.Delete(rs.asks, i, i+1)
	return true
}

// Pursue repeats requests and calls, and ends those that get no answer or whose holder has lost
// the role. standing returns the holder of a role; known is false if nothing is known of it.
func (rs *Requests) Pursue(standing func(role int) (g lease.Grantee, held, known bool), to route, now clock.Instant) {
	rs.asks = slices.DeleteFunc(rs.asks, func(a *asking) bool {
		g, held, known := standing(a.Role)
		switch {
		case !known || held && g.Session.Process == a.holder:
			a.gone = 0
		case a.gone == 0:
			a.gone = now.Mono
		}
		switch {
		case a.gone != 0 && now.Mono >= a.gone.Add(goneFor):
			rs.ended = append(rs.ended, Outcome{int(a.id), a.verdict(g, held)})
			return true
		case now.Mono >= a.until():
			rs.ended = append(rs.ended, Outcome{int(a.id), a.unanswered()})
			return true
		case a.gone == 0 && now.Mono >= a.again():
			rs.sendAsk(a, to, now)
		}
		return false
	})
	rs.calls = slices.DeleteFunc(rs.calls, func(c *calling) bool {
		switch {
		case now.Mono >= c.until():
			rs.ended = append(rs.ended, Outcome{c.id, c.unsent(deniedLimit)})
			return true
		case now.Mono >= c.again():
			rs.sendCall(c, to, now)
		}
		return false
	})
}

// Due is when Pursue next has something to do, if nothing is read.
func (rs *Requests) Due() clock.Mono {
	next := clock.Mono(clock.Never)
	for _, a := range rs.asks {
		if a.gone != 0 {
			next = min(next, a.gone.Add(goneFor), a.until())
		} else {
			next = min(next, a.again(), a.until())
		}
	}
	for _, c := range rs.calls {
		next = min(next, c.again(), c.until())
	}
	return next
}

// again is when a request is sent again.
func (a *asking) again() clock.Mono {
	if a.accepted {
		return a.sent.Add(a.pause(followEvery))
	}
	return a.sent.Add(a.pause(askEvery))
}

func (c *calling) again() clock.Mono { return c.sent.Add(c.pause(askEvery)) }

// until is when the answer of a silent holder is given up.
func (a *asking) until() clock.Mono { return min(a.heard.Add(askLimit), a.rejection.until()) }

// verdict returns the error of a request whose addressee is silent and no longer holds the role.
func (a *asking) verdict(g lease.Grantee, held bool) error {
	switch {
	case a.Verb == lease.Transfer && held && (g.Session.Process == a.To || g.Name == a.To):
		return nil
	case a.Verb != lease.Transfer && a.accepted: // the role has moved
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotDone, errElsewhere)
}

// unanswered is the error of a request to a silent holder.
func (a *asking) unanswered() error {
	switch {
	case a.denied != 0:
		return a.unsent(deniedLimit)
	case a.failed != nil:
		return a.unsent(askLimit)
	}
	return fmt.Errorf("%w for %v", ErrNoAnswer, askLimit)
}

// unsent is the error of a letter that no log has accepted for limit.
func (j *rejection) unsent(limit time.Duration) error {
	return fmt.Errorf("%w for %v, and the log does not take the request: %w", ErrNoAnswer, limit, j.failed)
}

// GiveUp forgets a request or a call, and returns how far it had come.
func (rs *Requests) GiveUp(id int) string {
	if i := slices.IndexFunc(rs.asks, func(a *asking) bool { return a.id == uint64(id) }); i >= 0 {
		a := rs.asks[i]
		rs.asks = slices.Delete(rs.asks, i, i+1)
		switch {
		case a.accepted:
			return "the holder has accepted, and has not said that it is done"
		case a.failed != nil:
			return "the log does not take it: " + a.failed.Error()
		}
		return "the holder has not answered"
	}
	if i := slices.IndexFunc(rs.calls, func(c *calling) bool { return c.id == id }); i >= 0 {
		c := rs.calls[i]
		rs.calls = slices.Delete(rs.calls, i, i+1)
		if c.failed != nil {
			return "the log does not take it: " + c.failed.Error()
		}
		return "it has not come back from the log"
	}
	return "its outcome is known"
}
