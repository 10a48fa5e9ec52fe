package lease

import (
	"fmt"
	"strings"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/judge"
)

// A tracer writes what the processes of a simulation did and believed, in the language of the
// specification (spec/TraceLease.tla). Without one, its methods do nothing.
type tracer struct {
	lines  []traceLine
	names  map[string]string        // a process's id → its name in the specification, which tells its T
	leases map[string]time.Duration // by name
	read   map[string]clock.Instant // by name: the clocks at its latest event
	sent   map[traceKey]int         // the line where a record was sent
}

// A traceLine is an event. send is the line where its record was sent, −1 if it has none.
type traceLine struct {
	text string
	send int
}

// A traceKey names a record by its sender and the sender's number.
type traceKey struct {
	process string
	seq     uint64
}

func newTracer() *tracer {
	return &tracer{names: map[string]string{}, leases: map[string]time.Duration{}, read: map[string]clock.Instant{}, sent: map[traceKey]int{}}
}

// begins notes that p begins to read at s.
func (t *tracer) begins(p *simProc, s int64, whole bool) {
	if t == nil {
		return
	}
	id := p.l.rules.Process
	t.names[id] = fmt.Sprintf("%s/%d", id, p.t.Milliseconds())
	t.leases[t.names[id]] = p.t
	t.event(p, "begin", fmt.Sprintf("s |-> %d, whole |-> %s, origin |-> %s", s, judge.Bool(whole), judge.Bool(p.origin)))
}

// renews notes a new session, if p has one.
func (t *tracer) renews(p *simProc, what string, was Session) {
	if t != nil && p.l.Session() != was {
		t.event(p, what, "")
	}
}

// reads notes that p has read its next record.
func (t *tracer) reads(p *simProc) {
	if t != nil {
		t.event(p, "read", "")
	}
}

// forgets notes that p has forgotten roles.
func (t *tracer) forgets(p *simProc, roles []int32) {
	if t == nil || len(roles) == 0 {
		return
	}
	var gone []Grant
	for _, role := range roles {
		gone = append(gone, Grant{Token: p.l.own.forgotten[role], Roles: []int32{role}})
	}
	t.event(p, "forget", "ended |-> "+traceGrants(gone))
}

// sends notes that p sends a record.
func (t *tracer) sends(p *simProc, r *Record) {
	if t == nil {
		return
	}
	kind := strings.ToUpper(string(r.Kind[:1])) + string(r.Kind[1:])
	if r.Kind == Ping || r.Kind == Pong {
		kind = "Hello"
	}
	n := len(t.lines)
	t.sent[traceKey{r.Session.Process, r.Seq}] = n
	t.event(p, "send", fmt.Sprintf("kind |-> %q, by |-> %s, read |-> %d, longest |-> %d, fresh |-> %s, roles |-> %s, ended |-> %s, ballot |-> %d",
		kind, t.session(r.Session), r.Read, judge.Micros(r.Longest), judge.Bool(r.Fresh), judge.Roles(r.Roles), traceGrants(r.Ended), n))
	t.lines[n].send = n
}

// arrives notes that a record was appended.
func (t *tracer) arrives(e *simEntry) {
	if t == nil {
		return
	}
	kind, send := "", -1
	switch {
	case e.newer:
		kind = "Newer"
	case e.r == nil:
		kind = "Other"
	default:
		send = t.sent[traceKey{e.r.Session.Process, e.r.Seq}]
	}
	t.lines = append(t.lines, traceLine{fmt.Sprintf("what |-> \"arrive\", p |-> \"\", h |-> 0, c |-> 0, kind |-> %q, ballot |-> %d, epoch |-> %d", kind, send, e.epoch), send})
}

// event adds what p did, with the time that has passed and what it believes now.
func (t *tracer) event(p *simProc, what, rest string) {
	now, name := p.now(), t.names[p.l.rules.Process]
	was, again := t.read[name]
	if !again {
		was = now
	}
	t.read[name] = now
	if rest != "" {
		rest = ", " + rest
	}
	t.lines = append(t.lines, traceLine{fmt.Sprintf("what |-> %q, p |-> %q, h |-> %d, c |-> %d, n |-> %d, b |-> %s%s", what, name,
		now.Wall.Sub(was.Wall).Microseconds(), now.Raw.Sub(was.Raw).Microseconds(), p.l.own.session.N, t.belief(p.l, now), rest), -1})
}

// belief returns what the operator Believes of spec/TraceLease.tla returns.
func (t *tracer) belief(l *Lease, now clock.Instant) string {
	left := func(at clock.Raw) int64 { return judge.Micros(max(0, at.Sub(now.Raw))) }
	if !l.Known() {
		return fmt.Sprintf("<<%d, %d, %d>>", l.own.session.N, l.read, left(l.FreshAt()))
	}
	life := time.Duration(0)
	if v := l.V(); v != longAgo {
		life = max(0, clock.Hold(l.rules.T)-now.Age(v))
	}
	var leads []int32
	var holders []string
	for role := range int32(traceRoleCount) {
		if _, ok := l.Leads(role, now); ok {
			leads = append(leads, role)
		}
		by, token, last := "<<>>", none, none
		if g, ok := l.Holder(role); ok {
			by, token, last = t.session(g.Session), g.Token, g.Last
		}
		holders = append(holders, fmt.Sprintf("<<%s, %d, %d, %d>>", by, token, last, left(l.FreeAt(role))))
	}
	return fmt.Sprintf("<<%d, %d, %d, %d, %s, <<%s>>>>", l.own.session.N, l.read, judge.Micros(life), l.fold.newer, judge.Roles(leads), strings.Join(holders, ", "))
}

func (t *tracer) session(s Session) string { return fmt.Sprintf("<<%q, %d>>", t.names[s.Process], s.N) }

// trace returns the whole trace. Only at the end is it known which records arrive, and which again.
func (t *tracer) trace() string {
	last := map[int]int{}
	for i, l := range t.lines {
		if l.send >= 0 {
			last[l.send] = i
		}
	}
	var b strings.Builder
	for i, l := range t.lines {
		switch {
		case l.send == i:
			l.text += ", lost |-> " + judge.Bool(last[i] == i)
		case strings.HasPrefix(l.text, `what |-> "arrive"`):
			l.text += ", again |-> " + judge.Bool(l.send >= 0 && last[l.send] > i)
		}
		fmt.Fprintf(&b, "%s\n[%s]", []string{"", ","}[min(i, 1)], l.text)
	}
	return b.String()
}

func traceGrants(grants []Grant) string {
	var s []string
	for _, g := range grants {
		s = append(s, judge.Grants(g.Token, g.Roles)...)
	}
	return judge.Set(s)
}
