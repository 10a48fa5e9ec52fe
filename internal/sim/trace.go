package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/judge"
	"github.com/goneli/neli/kafka"
)

// A tracer writes for spec/TraceLease.tla what whole processes on one partition did, as far as their
// broker and their callers see it: when reading began, what was read and sent, and what IsLeaderOf and
// Holder then said. The methods of a nil tracer do nothing.
type tracer struct {
	mu    sync.Mutex // guards the fields below
	lines []*traced
	next  map[*proc]int64    // what it reads next
	sent  map[string]*traced // by record
}

// traced is an event. An arrival has no process.
type traced struct {
	what   string
	p      *proc
	at     clock.Instant
	offset int64   // begin, read
	r      *record // send
	from   *traced // arrive: the event in which the record was sent; nil: there is none
	newer  bool    // arrive: of a newer version
	sees   string  // read: what the process said afterwards
}

// TraceRho is the ρ of all runs that are traced.
const TraceRho = 0.02

const (
	traceEvents = 600 // in a trace, at most
	traceLength = time.Minute
)

// untraced are faults that the specification does not have.
var untraced = []string{"wall clock set", "offsets without records"}

// Trace runs one seed, and returns its trace and the T of each process.
func Trace(t *testing.T, opts Options) (trace string, leases map[string]time.Duration) {
	opts.Seen = NewSeen()
	opts.tracer = &tracer{next: map[*proc]int64{}, sent: map[string]*traced{}}
	inWorld(t, &opts, func(w *world) {
		w.testify()
		for range 3 {
			w.start("")
		}
		of := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return slices.Contains(untraced, f.name) })
		for began := time.Now(); !opts.tracer.full() && time.Since(began) < traceLength && !w.over(); {
			w.until(w.upTo(2*w.timeouts[0]), func() bool { return w.over() || opts.tracer.full() })
			w.strike(oneOf(w.rnd, of...), w.victim())
			w.wish()
			w.beg()
		}
		w.end()
	})
	return opts.tracer.text()
}

// traceable makes the plan one that the specification covers.
func (p *plan) traceable(rnd *rand.Rand) {
	p.profile, p.drift, p.partitions, p.roles, p.sameR, p.newer = stormy, TraceRho, 1, 2, true, false
	p.timeouts = []time.Duration{oneOf(rnd, time.Second, 2*time.Second)}
	if rnd.IntN(2) == 0 {
		p.timeouts = append(p.timeouts, 3*time.Second)
	}
}

func (t *tracer) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.lines) >= traceEvents
}

// add adds an event at a place. It needs the lock.
func (t *tracer) add(i int, l *traced) {
	if len(t.lines) < traceEvents {
		t.lines = slices.Insert(t.lines, i, l)
	}
}

// assigned notes the offset from which p reads on. Unless that is p's next offset, p begins anew.
func (t *tracer) assigned(p *proc, offset int64) {
	if t == nil || p == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if next, reads := t.next[p]; !reads || next != offset {
		t.next[p] = offset
		t.add(len(t.lines), &traced{what: "begin", p: p, at: p.clock.Now(), offset: offset})
	}
}

// appended notes the next record of the log.
func (t *tracer) appended(e *truthEntry) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(len(t.lines), &traced{what: "arrive", from: t.sent[e.value], newer: e.newer})
}

// reads notes that p has got a record. taken notes that p has folded it.
func (t *tracer) reads(p *proc, r kafka.Record) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next[p] = r.Offset + 1
	t.add(len(t.lines), &traced{what: "read", p: p, at: p.clock.Now(), offset: r.Offset})
}

func (t *tracer) taken(p *proc, offset int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var leads, holders []string
	for role := range p.w.roles {
		if token, ok := p.Token(role); ok && p.IsLeaderOf(role) {
			leads = append(leads, fmt.Sprintf("<<%d, %d>>", role+1, token))
		}
		if h, ok := p.Holder(role); ok {
			holders = append(holders, fmt.Sprintf("<<%d, %d, %q>>", role+1, h.Token, h.Member))
		}
	}
	sees := fmt.Sprintf("leads |-> %s, holders |-> %s", judge.Set(leads), judge.Set(holders))
	last := len(t.lines) - 1
	for last >= 0 && (t.lines[last].p != p || t.lines[last].what != "read" || t.lines[last].offset != offset) {
		last--
	}
	if now := p.clock.Now(); last >= 0 && t.lines[last].at == now {
		t.lines[last].sees = sees
	} else if last >= 0 {
		t.add(len(t.lines), &traced{what: "see", p: p, at: now, sees: sees})
	}
}

// sends notes a record of p. Since p made the record, p may have read more, and time may have passed.
func (t *tracer) sends(p *proc, value string, r *record) {
	if t == nil || r == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i := len(t.lines)
	for k := i - 1; k >= 0; k-- {
		switch o := t.lines[k]; {
		case o.p != p:
		case o.what == "read" && o.offset > r.Read, o.what == "begin" && (o.offset > r.Read+1 || r.Session == 1): // a session begins with each begin
			i = k
		case o.what == "begin":
			k = 0
		}
	}
	l := &traced{what: "send", p: p, at: p.clock.Now(), r: r}
	t.sent[value] = l
	t.add(i, l)
}

// A Line is an event that a real process notes of itself, with the readings of its clocks on which it
// acted: it began to read, read or sent a record, or answered who leads ("see").
type Line struct {
	Process        string
	T              time.Duration
	What           string // begin, read, send, see
	Mono           clock.Mono
	Raw            clock.Raw // all processes share it
	Offset         int64
	Value          []byte
	Leads, Holders []string // in TLA+
}

// Replay returns the trace of processes on one machine that share a log with one partition, and the T of
// each. Times are cut to microseconds, so a duration may seem 1 µs shorter or longer than it was.
func Replay(group string, lines []Line) (trace string, leases map[string]time.Duration) {
	t, procs, values := &tracer{sent: map[string]*traced{}}, map[string]*proc{}, map[int64]string{}
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(a.Raw, b.Raw) })
	for _, l := range lines {
		if l.What == "read" {
			values[l.Offset] = string(l.Value)
		}
	}
	arrived := int64(0) // records before this offset have arrived: each does just before it is first read
	for _, l := range lines {
		p := procs[l.Process]
		if p == nil {
			p = &proc{self: l.Process, t: l.T}
			procs[l.Process] = p
		}
		e := &traced{what: l.What, p: p, offset: l.Offset, at: clock.Instant{
			Wall: clock.Wall(time.Duration(l.Mono).Truncate(time.Microsecond)), Raw: clock.Raw(time.Duration(l.Raw).Truncate(time.Microsecond))}}
		switch l.What {
		case "see":
			e.sees = fmt.Sprintf("leads |-> %s, holders |-> %s", judge.Set(l.Leads), judge.Set(l.Holders))
		case "send":
			if e.r, _ = decode(l.Value, group, logOf(l.Value)); e.r == nil {
				panic(fmt.Sprintf("no record of group %s was sent: %s", group, l.Value))
			}
			t.sent[string(l.Value)] = e
		case "read":
			for ; arrived <= l.Offset; arrived++ {
				t.lines = append(t.lines, &traced{what: "arrive", from: t.sent[values[arrived]]})
			}
		}
		t.lines = append(t.lines, e)
	}
	return t.text()
}

// text returns the trace, and the T of each process. Only at the end is it known which records arrive. A
// process's next record says in which session it was, and whether it knew the fold, perhaps by the origin.
func (t *tracer) text() (string, map[string]time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	leases, number, last := map[string]time.Duration{}, map[*traced]int{}, map[*traced]int{}
	newest, session, knows := map[*proc]uint64{}, make([]uint64, len(t.lines)), make([]bool, len(t.lines))
	for i, l := range t.lines {
		number[l] = i
		last[l.from] = i
		if l.r != nil {
			newest[l.p] = max(newest[l.p], l.r.Session)
		}
	}
	at, known := map[*proc]uint64{}, map[*proc]bool{}
	for i, l := range slices.Backward(t.lines) {
		switch l.what {
		case "send":
			known[l.p] = l.r.Longest != nil
			if l.r.Kind != "release" {
				at[l.p] = l.r.Session
			}
		case "begin":
			known[l.p] = false
		}
		if session[i] = at[l.p]; session[i] == 0 && l.p != nil {
			session[i] = newest[l.p] + 1
		}
		knows[i] = known[l.p]
	}
	was := map[*proc]clock.Instant{}
	var lines []string
	for i, l := range t.lines {
		if l.p == nil {
			kind := map[bool]string{true: "Newer", false: "Other"}[l.newer]
			_, ours := number[l.from]
			if ours {
				kind = ""
			}
			lines = append(lines, fmt.Sprintf("[what |-> \"arrive\", p |-> \"\", h |-> 0, c |-> 0, kind |-> %q, ballot |-> %d, epoch |-> 0, again |-> %s]",
				kind, number[l.from], judge.Bool(ours && last[l.from] > i)))
			continue
		}
		before, began := was[l.p]
		if !began {
			before = l.at
		}
		h, c := max(0, l.at.Wall.Sub(before.Wall)), max(0, l.at.Raw.Sub(before.Raw))
		was[l.p], leases[l.p.self] = clock.Instant{Wall: before.Wall.Add(h), Raw: before.Raw.Add(c)}, l.p.t
		text := fmt.Sprintf("what |-> %q, p |-> %q, h |-> %d, c |-> %d, n |-> %d, seen |-> TRUE", l.what, l.p.self, h.Microseconds(), c.Microseconds(), session[i])
		switch l.what {
		case "begin":
			text += fmt.Sprintf(", s |-> %d, whole |-> %s, origin |-> FALSE", l.offset, judge.Bool(l.offset == 0))
		case "read":
			text += ", origin |-> " + judge.Bool(knows[i])
		case "send":
			text += fmt.Sprintf(", %s, ballot |-> %d, lost |-> %s", l.r.tla(), i, judge.Bool(last[l] == 0))
		}
		if l.sees != "" {
			text += ", " + l.sees
		}
		lines = append(lines, "["+text+"]")
	}
	return strings.Join(lines, ",\n"), leases
}

// tla is a record in the language of the specification, which takes Pings and Pongs for Hellos.
func (r *record) tla() string {
	kind, longest := strings.ToUpper(r.Kind[:1])+r.Kind[1:], judge.Unsaid
	if r.Kind == "ping" || r.Kind == "pong" {
		kind = "Hello"
	}
	if r.Longest != nil {
		longest = *r.Longest
	}
	var ended []string
	for _, g := range r.ended {
		ended = append(ended, judge.Grants(g.token, g.roles)...)
	}
	return fmt.Sprintf("kind |-> %q, by |-> <<%q, %d>>, read |-> %d, longest |-> %d, fresh |-> %s, roles |-> %s, ended |-> %s",
		kind, r.Process, r.Session, r.Read, judge.Micros(longest), judge.Bool(r.Fresh), judge.Roles(r.roles), judge.Set(ended))
}
