package elector

import (
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goneli/neli/internal/clock"
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
	// maxRequests is how many may wait for the application.
	maxRequests = 16
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

	accepted, refused uint64 // how many were
}

// received is a request in the inbox.
type received struct {
	Request
	log    int           // the log in which it was last read
	at     int64         // its offset there
	answer *lease.Answer // nil: the application is deciding
}

// tenure is this process's relation to a request's role, by which the request is judged.
type tenure struct {
	takes     bool  // the application decides on requests
	nominated bool  // a nominator decides who may claim
	known     bool  // the role is below R
	leads     bool  // this process leads the role and is not giving it up
	earlier   bool  // the request was made before this term
	token     int64 // of this process's term; −1: it has none
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

// requested handles a request that was read at an offset of a log. It returns the request and the
// reason if it is refused without asking the application.
func (rs *requests) requested(log int, o int64, r *lease.Record, is func() tenure, now clock.Instant) (refused *received, why string) {
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
	if why == "" && len(in.waiting) >= maxRequests {
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
	q.token = t.token
	in.waiting = append(in.waiting, q)
	return nil, ""
}

// refusal returns why a request is refused without asking the application; empty if it is not.
func (t tenure) refusal(v lease.Verb) string {
	switch {
	case !t.takes:
		return "it takes no requests"
	case v != lease.Transfer && v != lease.StepDown:
		return "its version does not know what is asked for"
	case v == lease.Transfer && t.nominated:
		return "with Assigned nomination the group says who may claim"
	case !t.known:
		return "it knows no such role"
	case !t.leads:
		return "it does not lead the role, or is giving it up"
	case t.earlier:
		return "it is about an earlier term"
	}
	return ""
}

// next returns a request for the application, which must answer it.
func (rs *requests) next() (Request, bool) {
	in := &rs.inbox
	if len(in.waiting) == 0 {
		return Request{}, false
	}
	q := in.waiting[0]
	in.waiting = slices.Delete(in.waiting, 0, 1)
	return q.Request, true
}

// accept notes that the application accepts a request, and reports whether it may be carried out:
// this process must still be in the term in which the request was read, however long the
// application has taken. token is that of the current term.
func (rs *requests) accept(r Request, token int64) bool {
	rs.answer(r, lease.Accepted, "")
	if token == r.token {
		return true
	}
	rs.answer(r, lease.Failed, "it is about an earlier term")
	return false
}

// answer notes the result of a request.
func (rs *requests) answer(r Request, s lease.Stage, text string) {
	if q := rs.inbox.find(r.By, r.id); q != nil {
		rs.decide(q, s, text)
	}
}

func (rs *requests) decide(q *received, s lease.Stage, text string) {
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

// reply writes the state of a request to the log, if it has one.
func (rs *requests) reply(q *received) {
	if q.answer != nil {
		rs.out = append(rs.out, letter{log: q.log, kind: lease.Pong, to: q.By, ping: q.at, answer: q.answer})
	}
}

// Describe returns a request as attributes of a log line; text from others is made harmless.
func (q *Request) Describe() []any {
	args := []any{"role", q.Role, "verb", Harmless(string(q.Verb))}
	if q.To != "" {
		args = append(args, "to", Harmless(q.To))
	}
	return append(args, "by", Harmless(q.By), "by_name", Harmless(q.Name))
}

// Harmless returns text from another process in a form that people can safely view: quoted if it
// contains characters that move the cursor or change the direction of a line.
func Harmless(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(s)
	}
	return s
}

// Ask sends a request to the holder of the role, and returns the number of its Outcome. The error
// is ErrUnknown, ErrVacant or ErrLeadsAlready, or says what is wrong with the request.
func (n *Node) Ask(r Request, now clock.Instant) (id int, err error) {
	if len(n.shards) == 0 {
		return 0, ErrUnknown
	}
	p, u := n.local(r.Role)
	switch token, g := p.standing(u, now); {
	case token == unknownToken:
		return 0, ErrUnknown
	case token == vacantToken:
		return 0, ErrVacant
	case g.Session.Process == n.set.Process:
		return 0, errOwnRole
	case r.Verb == lease.Transfer && n.members.means(r.To, Self{g.Session.Process, g.Name}, now):
		return 0, ErrLeadsAlready
	default:
		return n.requests.ask(r, g.Session.Process, n.route, now)
	}
}

// Call asks all members to announce themselves, and returns the number of its Outcome.
func (n *Node) Call(now clock.Instant) (id int, err error) {
	if len(n.shards) == 0 {
		return 0, ErrUnknown
	}
	return n.requests.call(n.route, now)
}

// Accept notes that the application accepts a request, and reports whether it may be carried out.
func (n *Node) Accept(r Request) bool {
	p, u := n.local(r.Role)
	return n.requests.accept(r, p.holds.tokenOf(u))
}

// route chooses the log for a letter: the log with the role or, if all logs have all roles, one
// after the other.
func (n *Node) route(role, tries int) int {
	logs := n.channels
	if role != anyRole {
		p, _ := n.local(role)
		logs = p.logs
	}
	return logs[(n.reachable()+tries)%len(logs)].index
}

// requested handles a request to this process.
func (n *Node) requested(log int, o int64, r *lease.Record, now clock.Instant) {
	if n.set.Observer {
		return
	}
	refused, why := n.requests.requested(log, o, r, func() tenure {
		t := tenure{takes: n.set.Requests, nominated: n.set.Nominated, known: r.Request.Role < n.desired.Roles, token: -1}
		if t.known {
			home, u := n.local(r.Request.Role)
			h := home.holds.at(u)
			_, leads := home.lease.Leads(u, now)
			t.leads = leads && h != nil && home.hands.of(u) == nil
			// A late request may concern an earlier term: its sender had not read the Claim of
			// this one.
			t.earlier = t.leads && home.lease.Earlier(log, r.Read, h.token)
			t.token = home.holds.tokenOf(u)
		}
		return t
	}, now)
	if refused != nil {
		n.note(slog.LevelInfo, "request refused", append(refused.Describe(), "error", why)...)
	}
	n.correspond(now)
	n.ready.Requested = n.ready.Requested || len(n.requests.inbox.waiting) > 0
}

// correspond sends the letters of requests and reports their outcomes. It cannot answer a request
// from a log that was read again since; its sender will repeat it.
func (n *Node) correspond(now clock.Instant) {
	letters, ended := n.requests.take()
	n.ready.Outcomes = append(n.ready.Outcomes, ended...)
	for _, l := range letters {
		p := n.channels[l.log]
		if !p.begun || l.kind == lease.Pong && p.log.Offset() < l.ping {
			continue
		}
		r := p.word(l.kind, now)
		r.To, r.Ping, r.Request, r.Answer = l.to, l.ping, l.request, l.answer
		if l.kind == lease.Pong {
			r.Hello = n.announcement(n.wants(now))
		}
		p.append(now, r)
	}
}
