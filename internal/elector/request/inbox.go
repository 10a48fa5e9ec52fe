package request

import (
	"errors"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
)

// Errors of Ask. Package neli has public errors for these.
var (
	ErrRefused = errors.New("neli: the request was refused")
	ErrNotDone = errors.New("neli: the request was accepted, and could not be carried out")
	ErrVacant  = errors.New("neli: nobody is known to hold the role")
)

// Request asks the holder of a role to give it up.
type Request struct {
	Role     int
	Verb     lease.Verb
	To       string // Transfer: a member's id or name
	By, Name string // of a received request: the requester's id and name, as it states them
	id       uint64
	token    int64 // of the term in which it was read
}

const (
	// requestEvery is the average interval at which requests are accepted for a decision, and
	// requestBurst how many may come at once. Excess requests are dropped; senders retry.
	requestEvery = time.Second
	requestBurst = 4
	// MaxRequests is how many may wait for the application.
	MaxRequests = 16
	// maxAnswered is how many are remembered, so that a repeated request is decided once.
	maxAnswered = 64
)

// inbox is the requests to this process: those that the application decides on, and those that are
// refused without asking it. They are preference, like everything in this package: a request leads
// to what Transfer or StepDown of this process does.
type inbox struct {
	next    clock.Mono  // when the next request is due at the average rate
	known   []*received // requests decided or waiting, newest last
	waiting []*received // for the application, oldest first

	accepted, refused uint64 // how many requests were
}

// received is a request in the inbox.
type received struct {
	Request
	log    int           // the log in which it was last read
	at     int64         // its offset there
	answer *lease.Answer // nil: the application is deciding
}

// Tenure is this process's relation to a request's role, by which the request is judged.
type Tenure struct {
	Takes     bool  // the application decides on requests
	Nominated bool  // a nominator decides who may claim
	Known     bool  // the role is below R
	Leads     bool  // this process leads the role and is not giving it up
	Earlier   bool  // the request was made before this term
	Token     int64 // of this process's term; −1: it has none
}

// find returns a request in the inbox, or nil.
func (in *inbox) find(by string, id uint64) *received {
	i := slices.IndexFunc(in.known, func(q *received) bool { return q.By == by && q.id == id })
	if i < 0 {
		return nil
	}
	return in.known[i]
}

// due reports whether another request may be considered now.
func (in *inbox) due(now clock.Instant) bool {
	if in.next.Sub(now.Mono) > (requestBurst-1)*requestEvery {
		return false
	}
	in.next = max(in.next, now.Mono).Add(requestEvery)
	return true
}

// Requested handles a request that was read at an offset of a log. It returns the request and the
// reason if it is refused without asking the application.
func (rs *Requests) Requested(log int, o int64, r *lease.Record, is func() Tenure, now clock.Instant) (refused *received, why string) {
	in := &rs.inbox
	if !in.due(now) {
		return nil, ""
	}
	if q := in.find(r.Session.Process, r.Request.ID); q != nil {
		q.log, q.at = log, o
		rs.reply(q)
		return nil, ""
	}
	q := &received{Request: Request{Role: r.Request.Role, Verb: r.Request.Verb, To: r.Request.To, By: r.Session.Process, Name: r.Name,
		id: r.Request.ID}, log: log, at: o}
	t := is()
	why = t.refusal(q.Verb)
	if why == "" && len(in.waiting) >= MaxRequests {
		return nil, ""
	}
	in.known = append(in.known, q)
	if more := len(in.known) - maxAnswered; more > 0 {
		in.known = slices.Delete(in.known, 0, more)
	}
	if why != "" {
		rs.decide(q, lease.Refused, why)
		return q, why
	}
	q.token = t.Token
	in.waiting = append(in.waiting, q)
	return nil, ""
}

// refusal returns why a request is refused without asking the application; empty if it is not.
func (t Tenure) refusal(v lease.Verb) string {
	switch {
	case !t.Takes:
		return "it takes no requests"
	case v != lease.Transfer && v != lease.StepDown && v != lease.Rebalance:
		return "its version does not know what is asked for"
	case v != lease.StepDown && t.Nominated:
		return "with Assigned nomination the group says who may claim"
	case !t.Known:
		return "it knows no such role"
	case !t.Leads:
		return "it does not lead the role, or is giving it up"
	case t.Earlier:
		return "it is about an earlier term"
	}
	return ""
}

// Next returns a request for the application, which must answer it.
func (rs *Requests) Next() (Request, bool) {
	in := &rs.inbox
	if len(in.waiting) == 0 {
		return Request{}, false
	}
	q := in.waiting[0]
	in.waiting = slices.Delete(in.waiting, 0, 1)
	return q.Request, true
}

// Waits reports whether a request waits for the application.
func (rs *Requests) Waits() bool { return len(rs.inbox.waiting) > 0 }

// Decided is how many requests the application has accepted, and how many were refused.
func (rs *Requests) Decided() (accepted, refused uint64) { return rs.inbox.accepted, rs.inbox.refused }

// Accept notes that the application accepts a request, and reports whether it may be carried out:
// this process must still be in the term in which the request was read, however long the
// application has taken. token is that of the current term.
func (rs *Requests) Accept(r Request, token int64) bool {
	rs.Answer(r, lease.Accepted, "")
	if token == r.token {
		return true
	}
	rs.Answer(r, lease.Failed, "it is about an earlier term")
	return false
}

// Answer notes the result of a request.
func (rs *Requests) Answer(r Request, s lease.Stage, text string) {
	if q := rs.inbox.find(r.By, r.id); q != nil {
		rs.decide(q, s, text)
	}
}

func (rs *Requests) decide(q *received, s lease.Stage, text string) {
	switch s {
	case lease.Accepted:
		rs.inbox.accepted++
	case lease.Refused:
		rs.inbox.refused++
	case lease.Done, lease.Failed:
	}
	q.answer = &lease.Answer{ID: q.id, Stage: s, Text: text}
	rs.reply(q)
}

// reply answers a request in its log, if there is an answer yet.
func (rs *Requests) reply(q *received) {
	if q.answer != nil {
		rs.out = append(rs.out, Letter{Log: q.log, Kind: lease.Pong, To: q.By, Ping: q.at, Answer: q.answer})
	}
}

// Describe returns a request as attributes of a log line; text from others is made harmless.
func (q *Request) Describe() []any {
	args := []any{"role", q.Role, "verb", roster.Harmless(string(q.Verb))}
	if q.To != "" {
		args = append(args, "to", roster.Harmless(q.To))
	}
	return append(args, "by", roster.Harmless(q.By), "by_name", roster.Harmless(q.Name))
}
