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

// Requests from outside, as their addressee has them: what is put to the application, and
// what is refused without asking it. They are preference like everything here; what follows
// from one is what Transfer or StepDown of this process does (ask.go is the other end).

// Why a request was not fulfilled. Package neli has them as its own.
var (
	ErrRefused = errors.New("neli: the request was refused")
	ErrNotDone = errors.New("neli: the request was accepted, and could not be carried out")
	ErrVacant  = errors.New("neli: nobody is known to hold the role")
)

// Request is a wish that the holder of a role let go of it.
type Request struct {
	Role     int
	Verb     lease.Verb
	To       string // Transfer: a member's id or name
	By, Name string // of one that was read: the process that asks, and what it calls itself
	id       uint64
	token    int64 // of the term in which it was read
}

const (
	// requestEvery is how often a request is looked at, on average; requestBurst so many may come at
	// once. One that is not looked at is as good as lost: its sender sends it again.
	requestEvery = time.Second
	requestBurst = 4
	// maxRequests is how many wait for the application.
	maxRequests = 16
	// maxAnswered is how many are remembered, so that one that comes twice is put once.
	maxAnswered = 64
)

// inbox is the requests to this process.
type inbox struct {
	next    clock.Time  // monotonic: when the next one would come at the average rate
	known   []*received // those that were looked at, newest last
	waiting []*received // for the application, oldest first
}

// received is a request that was looked at.
type received struct {
	Request
	log    int           // where it was read last
	at     int64         // and at which offset
	answer *lease.Answer // nil: the application has it
}

// find returns what is known of a request.
func (in *inbox) find(by string, id uint64) *received {
	i := slices.IndexFunc(in.known, func(q *received) bool { return q.By == by && q.id == id })
	if i < 0 {
		return nil
	}
	return in.known[i]
}

// due reports whether another request may be looked at now.
func (in *inbox) due(now clock.Instant) bool {
	if in.next.Sub(now.Mono) > (requestBurst-1)*requestEvery {
		return false
	}
	in.next = max(in.next, now.Mono).Add(requestEvery)
	return true
}

// requested takes note of a request to this process, in a log at an offset.
func (n *Node) requested(p *partition, o int64, r *lease.Record, now clock.Instant) {
	in := &n.inbox
	if n.set.Observer || !in.due(now) {
		return
	}
	if q := in.find(r.Session.Process, r.Request.ID); q != nil {
		q.log, q.at = p.index, o
		n.reply(q, now)
		return
	}
	q := &received{Request: Request{Role: r.Request.Role, Verb: r.Request.Verb, To: r.Request.To, By: r.Session.Process, Name: r.Name,
		id: r.Request.ID}, log: p.index, at: o}
	why := n.refusal(p, r, now)
	if why == "" && len(in.waiting) >= maxRequests {
		return
	}
	in.known = append(in.known, q)
	if more := len(in.known) - maxAnswered; more > 0 {
		in.known = slices.Delete(in.known, 0, more)
	}
	if why != "" {
		n.note(slog.LevelInfo, "request refused", append(q.Describe(), "error", why)...)
		n.decide(q, lease.Refused, why, now)
		return
	}
	q.token = n.tokenOf(q.Role)
	in.waiting = append(in.waiting, q)
	n.ready.Requested = true
}

// refusal tells why a request is refused without asking the application; "": it is not.
func (n *Node) refusal(p *partition, r *lease.Record, now clock.Instant) string {
	q := r.Request
	switch {
	case !n.set.Requests:
		return "it takes no requests"
	case q.Verb != lease.Transfer && q.Verb != lease.StepDown:
		return "its version does not know what is asked for"
	case q.Verb == lease.Transfer && n.set.Nominated:
		return "with Assigned nomination the group says who may claim"
	case q.Role >= n.desired.Roles:
		return "it knows no such role"
	}
	home, u := n.local(q.Role)
	h := home.holds[u]
	if _, leads := home.lease.Leads(u, now); !leads || h == nil || h.hand != nil {
		return "it does not lead the role, or is giving it up"
	}
	// Its sender means the term that it has read of. One that comes late may be of an earlier
	// one: tokens of one log are offsets in it.
	if n.quorum == nil && (home != p || r.Read < h.token) {
		return "it is about an earlier term"
	}
	return ""
}

// NextRequest returns a request that the application is to decide on, and then has to Answer.
func (n *Node) NextRequest() (Request, bool) {
	in := &n.inbox
	if len(in.waiting) == 0 {
		return Request{}, false
	}
	q := in.waiting[0]
	in.waiting = slices.Delete(in.waiting, 0, 1)
	return q.Request, true
}

// tokenOf is the token under which this process holds a role; −1: it does not.
func (n *Node) tokenOf(role int) int64 {
	p, u := n.local(role)
	if h := p.holds[u]; h != nil {
		return h.token
	}
	return -1
}

// Accept says that the application accepts a request, and reports whether it may be carried
// out: it is about the term in which it was read, however long the application has thought.
func (n *Node) Accept(r Request, now clock.Instant) bool {
	n.Answer(r, lease.Accepted, "", now)
	if n.tokenOf(r.Role) == r.token {
		return true
	}
	n.Answer(r, lease.Failed, "it is about an earlier term", now)
	return false
}

// Answer says what has become of a request.
func (n *Node) Answer(r Request, s lease.Stage, text string, now clock.Instant) {
	if q := n.inbox.find(r.By, r.id); q != nil {
		n.decide(q, s, text, now)
	}
}

func (n *Node) decide(q *received, s lease.Stage, text string, now clock.Instant) {
	switch s {
	case lease.Accepted:
		n.counts.RequestsAccepted++
	case lease.Refused:
		n.counts.RequestsRefused++
	case lease.Done, lease.Failed:
	}
	q.answer = &lease.Answer{ID: q.id, Stage: s, Text: text}
	n.reply(q, now)
}

// reply says in the log what has become of a request, if anything has. If that log was begun
// anew since, the request is sent again there.
func (n *Node) reply(q *received, now clock.Instant) {
	p := n.logs[q.log]
	if q.answer == nil || !p.begun || p.log.Offset() < q.at {
		return
	}
	r := n.word(p, lease.Pong, now)
	r.To, r.Ping, r.Hello, r.Answer = q.By, q.at, n.announcement(n.wants(now)), q.answer
	n.append(p, now, r)
}

// Describe is a request as a log has it: what others say is made harmless.
func (q *Request) Describe() []any {
	args := []any{"role", q.Role, "verb", Harmless(string(q.Verb))}
	if q.To != "" {
		args = append(args, "to", Harmless(q.To))
	}
	return append(args, "by", Harmless(q.By), "by_name", Harmless(q.Name))
}

// Harmless is text of somebody else's as people may see it: quoted if it has what moves a
// cursor or turns the direction of a line.
func Harmless(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(s)
	}
	return s
}
