package quorum

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/goneli/neli/internal/lease"
)

// A simulated world: N logs that may forget everything, some processes, an adversary, and
// an oracle that sees all. Events happen one after the other in true time, drawn from one
// seed.

// simEntry is a record in a log, or on its way there, with the id of the incarnation that
// its sender read.
type simEntry struct {
	id string
	r  *lease.Record
}

// incarnation is a log from one loss of memory to the next.
type incarnation struct {
	id      string
	base    int64 // its first offset
	records []*simEntry
	low     int64 // what is below was deleted
}

func (x *incarnation) end() int64 { return x.base + int64(len(x.records)) }

// simLog is one log. Two incarnations never serve at the same time, though answers of
// both may be on their way.
type simLog struct {
	index int
	all   []*incarnation
	down  bool
	held  []*simEntry // what reaches it while it is down
}

func (g *simLog) now() *incarnation { return g.all[len(g.all)-1] }

type simWorld struct {
	pr    simProfile
	r     *rand.Rand
	seed  uint64
	now   time.Duration
	queue simQueue
	logs  []*simLog
	procs []*simProc
	calm  bool // the adversary has gone

	oracle simOracle
	count  simCount
	trace  func(format string, args ...any)
}

// simCount tells how much a simulation has seen.
type simCount struct {
	events, records, terms, takeovers, valid, forgot, lifted, boots, known int
}

func (c *simCount) add(d simCount) {
	c.events, c.records, c.terms, c.takeovers = c.events+d.events, c.records+d.records, c.terms+d.terms, c.takeovers+d.takeovers
	c.valid, c.forgot, c.lifted, c.boots, c.known = c.valid+d.valid, c.forgot+d.forgot, c.lifted+d.lifted, c.boots+d.boots, c.known+d.known
}

func (c simCount) String() string {
	return fmt.Sprintf("%d records, %d terms, %d of another process than the one before, %d own claims valid, of which %d lifted the ballot; "+
		"%d logs forgot, %d boots, %d times known", c.records, c.terms, c.takeovers, c.valid, c.lifted, c.forgot, c.boots, c.known)
}

func newSimWorld(seed uint64, draw func(*rand.Rand) simProfile) *simWorld {
	w := &simWorld{r: rand.New(rand.NewPCG(seed, 0x900)), seed: seed, trace: func(string, ...any) {}}
	w.pr = draw(w.r)
	w.oracle.watch(w)
	for i := range w.pr.logs {
		g := &simLog{index: i}
		w.logs = append(w.logs, g)
		w.incarnate(g, 0)
		w.every(w.pr.down, func() { w.stop(g); w.after(w.spread(0.01, 8), func() { w.start(g) }) })
		w.every(w.pr.forget, func() { w.forget(g) })
		w.every(w.pr.remove, func() {
			x := g.now()
			x.low = max(x.low, x.base+w.r.Int64N(x.end()-x.base+1))
		})
	}
	w.every(w.pr.forgetAll, func() {
		for _, g := range w.logs {
			w.forget(g)
		}
	})
	for i := range w.pr.procs {
		p := &simProc{w: w, i: i}
		w.procs = append(w.procs, p)
		w.after(w.span(simT/2), p.boot)
		p.faults()
	}
	return w
}

// run lets time pass until the horizon, or until something is wrong.
func (w *simWorld) run(until time.Duration, enough func() bool) {
	for len(w.queue.heap) > 0 && w.oracle.fault == "" && w.count.events < w.pr.limit {
		if w.queue.heap[0].at > until {
			break
		}
		e := w.queue.pop()
		w.now = max(w.now, e.at)
		w.count.events++
		e.do()
		if enough != nil && enough() {
			return
		}
	}
}

func (w *simWorld) after(d time.Duration, do func()) { w.queue.push(w.now+max(0, d), do) }

// every lets something happen at random times, that far apart on average, until calm.
func (w *simWorld) every(mean time.Duration, do func()) {
	if mean <= 0 || w.calm {
		return
	}
	w.after(time.Duration(w.r.ExpFloat64()*float64(mean)), func() {
		if w.calm {
			return
		}
		do()
		w.every(mean, do)
	})
}

// span is a uniform duration below d.
func (w *simWorld) span(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.r.Int64N(int64(d)))
}

// spread is a duration between some leases, all magnitudes alike.
func (w *simWorld) spread(low, high float64) time.Duration {
	return time.Duration(float64(simT) * low * math.Exp(w.r.Float64()*math.Log(high/low)))
}

func (w *simWorld) maybe(p float64) bool { return p > 0 && w.r.Float64() < p }

// latency of an append or an answer. In a calm world it is log-normal around half a round
// trip of T/100.
func (w *simWorld) latency(class int) time.Duration {
	if w.calm {
		return time.Duration(float64(simT) / 200 * math.Exp(w.r.NormFloat64()*0.4))
	}
	if w.maybe(w.pr.heavy) {
		return w.spread(0.05, 10)
	}
	switch class {
	case 0:
		return 0
	case 1:
		return w.span(simT / 200)
	case 2:
		return w.span(simT / 5)
	}
	return w.spread(0.001, 1)
}

// incarnate lets a log begin with nothing in it, and be found by everybody.
func (w *simWorld) incarnate(g *simLog, base int64) {
	x := &incarnation{id: fmt.Sprintf("%d.%d", g.index, len(g.all)), base: base, low: base}
	g.all = append(g.all, x)
	w.tellAll(g)
}

// forget is a restart of a log: empty, or as if it had lost its tail, with another id.
func (w *simWorld) forget(g *simLog) {
	base := int64(0)
	if w.r.IntN(3) == 0 {
		base = w.r.Int64N(g.now().end() + 1)
	}
	w.count.forgot++
	w.incarnate(g, base)
	w.trace("   log %d forgets, and is %s from %d on", g.index, g.now().id, base)
}

func (w *simWorld) stop(g *simLog) {
	w.trace("   log %d stops", g.index)
	g.down = true
}

func (w *simWorld) start(g *simLog) {
	g.down = false
	for _, e := range g.held {
		w.after(w.latency(w.pr.slow), func() { w.append(g, e) })
	}
	g.held = nil
	w.tellAll(g)
}

// tellAll lets everybody have an answer of a log.
func (w *simWorld) tellAll(g *simLog) {
	if g.down {
		return
	}
	for _, p := range w.procs {
		p.answer(g, w.latency(w.pr.lag))
	}
}

// append puts an entry into a log.
func (w *simWorld) append(g *simLog, e *simEntry) {
	if g.down {
		if w.r.IntN(2) == 0 {
			g.held = append(g.held, e)
		}
		return
	}
	x := g.now()
	if e.id != x.id && !w.pr.keeps {
		return // refused
	}
	o := x.end()
	x.records = append(x.records, e)
	w.count.records++
	w.trace("   log %s at %d = %s", x.id, o, simText(e))
	w.tellAll(g)
}

// simText is a record in words: all that counts.
func simText(e *simEntry) string {
	r := e.r
	s := fmt.Sprintf("%s of %s/%d #%d read %d ballot %d", r.Kind, r.Session.Process, r.Session.N, r.Seq, r.Read, r.Ballot)
	if r.Fresh {
		s += " fresh"
	}
	if len(r.Roles) > 0 {
		s += fmt.Sprint(" roles ", r.Roles)
	}
	for _, g := range r.Ended {
		s += fmt.Sprintf(" ends %v of token %d", g.Roles, g.Token)
	}
	return s + " for " + e.id
}

// simQueue is what is yet to happen, soonest first; of what is due at one time what was
// asked for first.
type simQueue struct {
	heap []simEvent
	n    int
}

type simEvent struct {
	at time.Duration
	n  int
	do func()
}

func (e simEvent) before(f simEvent) bool { return e.at < f.at || e.at == f.at && e.n < f.n }

func (q *simQueue) push(at time.Duration, do func()) {
	q.n++
	q.heap = append(q.heap, simEvent{at, q.n, do})
	for i := len(q.heap) - 1; i > 0 && q.heap[i].before(q.heap[(i-1)/2]); i = (i - 1) / 2 {
		q.heap[i], q.heap[(i-1)/2] = q.heap[(i-1)/2], q.heap[i]
	}
}

func (q *simQueue) pop() simEvent {
	e, last := q.heap[0], len(q.heap)-1
	q.heap[0], q.heap[last] = q.heap[last], simEvent{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		k := 2*i + 1
		if k+1 < last && q.heap[k+1].before(q.heap[k]) {
			k++
		}
		if k >= last || !q.heap[k].before(q.heap[i]) {
			return e
		}
		q.heap[i], q.heap[k] = q.heap[k], q.heap[i]
		i = k
	}
}
