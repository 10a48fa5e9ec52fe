package quorum

import (
	"fmt"
	"math/rand/v2"

	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/seeded"
)

// A simulated world: N logs that may forget everything, several processes, an adversary, and an
// oracle that sees everything. Events happen one after the other in true time, drawn from one
// seed.

// simEntry is a record in a log, or in flight to it, with the id of the incarnation that its sender read.
type simEntry struct {
	id string
	r  *lease.Record
}

// incarnation is the life of a log from one loss of memory to the next.
type incarnation struct {
	id      string
	base    int64 // its first offset
	records []*simEntry
	low     int64 // offsets below it were deleted
	host    hostState
}

func (x *incarnation) end() int64 { return x.base + int64(len(x.records)) }

// simLog is one log. Two incarnations never serve at the same time, though answers of both may be in flight.
type simLog struct {
	index int
	all   []*incarnation
	down  bool
	held  []*simEntry // records that reached it while it was down
	lists known       // the lists with which its host starts
	gone  bool        // for good
}

func (g *simLog) now() *incarnation { return g.all[len(g.all)-1] }

type simWorld struct {
	seeded.World
	pr    simProfile
	logs  []*simLog
	procs []*simProc

	sentinels []*simSentinel
	dead      map[string]bool // ids of dead processes
	lie       lie             // how the sentinels' proofs of death are wrong

	oracle simOracle
	count  simCount
	tracer *tracer // nil: no trace is written
}

// simCount counts what a simulation has seen.
type simCount struct {
	records, terms, takeovers, valid, forgot, lifted, boots, known, lost int
	deaths, buried, late                                                 int

	// After a misread record.
	rewound, taken [8]int         // by process: logs begun again, wanted terms that ended
	wrong          map[string]int // by what must never happen
}

func (c *simCount) add(d simCount) {
	c.records, c.terms, c.takeovers = c.records+d.records, c.terms+d.terms, c.takeovers+d.takeovers
	c.valid, c.forgot, c.lifted, c.boots, c.known, c.lost = c.valid+d.valid, c.forgot+d.forgot, c.lifted+d.lifted, c.boots+d.boots, c.known+d.known, c.lost+d.lost
	c.deaths, c.buried, c.late = c.deaths+d.deaths, c.buried+d.buried, c.late+d.late
}

func (c simCount) String() string {
	return fmt.Sprintf("%d records, %d terms, %d of another process than the one before, %d own claims valid, of which %d lifted the ballot; "+
		"%d logs forgot, %d boots, %d times known, %d records lost by links", c.records, c.terms, c.takeovers, c.valid, c.lifted, c.forgot, c.boots, c.known, c.lost)
}

func newSimWorld(seed uint64, draw func(*rand.Rand) simProfile) *simWorld {
	w := &simWorld{dead: map[string]bool{}}
	w.count.wrong = map[string]int{}
	w.Begin(seed, 0x900)
	w.pr = draw(w.R)
	w.T, w.Heavy, w.Limit = simT, w.pr.Heavy, w.pr.limit
	w.oracle.watch(w)
	for i := range w.pr.logs {
		g := &simLog{index: i}
		w.logs = append(w.logs, g)
		w.incarnate(g, 0)
		w.Every(w.pr.down, func() { w.stop(g); w.After(w.Spread(0.01, 8), func() { w.start(g) }) })
		w.Every(w.pr.forget, func() { w.forget(g) })
		w.Every(w.pr.remove, func() {
			x := g.now()
			x.low = max(x.low, x.base+w.R.Int64N(x.end()-x.base+1))
		})
	}
	w.Every(w.pr.forgetAll, func() {
		for _, g := range w.logs {
			w.forget(g)
		}
	})
	for i := range w.pr.procs {
		p := &simProc{w: w, i: i}
		w.procs = append(w.procs, p)
		w.After(w.Span(simT/2), p.boot)
		p.faults()
	}
	w.startSentinels()
	w.moveLists()
	return w
}

// incarnate lets a log begin with no records, and tells all processes.
func (w *simWorld) incarnate(g *simLog, base int64) {
	x := &incarnation{id: fmt.Sprintf("%d.%d", g.index, len(g.all)), base: base, low: base, host: hostState{lists: g.lists}}
	g.all = append(g.all, x)
	w.tellAll(g)
}

// forget restarts a log with another id: empty, or as if it had lost its tail.
func (w *simWorld) forget(g *simLog) {
	if w.remembers() {
		return
	}
	base := int64(0)
	if w.R.IntN(3) == 0 && w.tracer == nil {
		base = w.R.Int64N(g.now().end() + 1)
	}
	w.count.forgot++
	w.tracer.world("forget", g.index, nil)
	w.incarnate(g, base)
	w.Trace("   log %d forgets, and is %s from %d on", g.index, g.now().id, base)
}

func (w *simWorld) stop(g *simLog) {
	w.Trace("   log %d stops", g.index)
	g.down = true
}

func (w *simWorld) start(g *simLog) {
	if g.gone {
		return
	}
	g.down = false
	for _, e := range g.held {
		w.After(w.Latency(w.pr.Slow), func() { w.append(g, e) })
	}
	g.held = nil
	w.tellAll(g)
}

// tellAll sends everybody an answer of a log.
func (w *simWorld) tellAll(g *simLog) {
	if g.down {
		return
	}
	for _, p := range w.procs {
		p.answer(g, w.Latency(w.pr.Lag))
	}
}

// append puts an entry into a log.
func (w *simWorld) append(g *simLog, e *simEntry) {
	if g.down {
		if w.R.IntN(2) == 0 {
			g.held = append(g.held, e)
		}
		return
	}
	x := g.now()
	if e.id != x.id && !w.pr.keeps || !w.serves(g, e.r.Session.Process) {
		return // refused
	}
	o := x.end()
	x.records = append(x.records, e)
	w.count.records++
	w.buried(e)
	w.tracer.world("arrive", g.index, e)
	w.Trace("   log %s at %d = %s", x.id, o, simText(e))
	w.tellAll(g)
}

// simText describes a record.
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
