package quorum

import (
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/seeded"
)

// simProc is a simulated process around the Lease that ships. It also schedules what happens to that process.
type simProc struct {
	w *simWorld
	i int

	q     *Lease
	clk   seeded.Clock
	inc   int // counts boots
	lists known
	ticks int // number of the tick that was asked for last: only that one is due

	alive, paused bool
	logs          []simReading
	want          []bool
	contest       map[int32]clock.Mono // when a vacant role will be contested
	delay         time.Duration        // how long a role is vacant before this process contests it
	rank          int
	led           []int64 // by role: the token it led by
}

// simReading is a process's position in a log, and its connection to it.
type simReading struct {
	in            *incarnation // nil: not begun
	next          int64
	inCut, outCut bool
	outbox        []*simEntry
	lastAppend    time.Duration
	releaseAt     clock.Mono // when it will repeat Releases; 0: none is missing
	asked         clock.Mono // when it will write a Snapshot; 0: it will not
	hello         clock.Mono // when it last said Hello
	since         int        // records since the newest Snapshot
	lost          int64      // records that were lost just before next
	voice         bool       // the Snapshot is for comparison: another process's does not cancel it
	misreads      lease.Kind // the next record of this kind is taken for one without effect
}

func (p *simProc) now() clock.Instant { return p.clk.Read(p.w.Now) }
func (p *simProc) String() string     { return fmt.Sprintf("%c.%d", 'a'+p.i, p.inc) }

// boot starts the process again, with other clocks and an empty memory.
func (p *simProc) boot() {
	w, pr := p.w, &p.w.pr
	if p.alive {
		return
	}
	w.count.boots++
	*p = simProc{w: w, i: p.i, inc: p.inc + 1, ticks: p.ticks + 1, alive: true, logs: p.logs, led: p.led, rank: p.i, lists: p.lists, contest: map[int32]clock.Mono{}}
	for len(p.logs) < pr.logs {
		p.logs = append(p.logs, simReading{})
	}
	for i := range p.logs {
		p.logs[i] = simReading{inCut: p.logs[i].inCut && !w.Calm, outCut: p.logs[i].outCut && !w.Calm}
	}
	if p.led == nil {
		p.led = make([]int64, pr.roles)
	}
	p.clk = w.newClock(w.Span(pr.wall) - pr.wall/2)
	w.Rates(&p.clk, pr.rho, pr.sigma)
	var lists [][]int
	if pr.move != nil {
		pr.move.kinds[p.String()] = p.lists
		lists = pr.move.lists(p.lists)
	}
	p.q = New(Rules{Logs: pr.logs, Lists: lists, Process: p.String(), Name: "process", T: simT, Rho: pr.rho, History: 64, Random: w.Span})
	p.q.RoundTrip(pr.trip)
	p.want = make([]bool, pr.roles)
	for role := range p.want {
		p.want[role] = pr.wantAll || w.Maybe(pr.wanting)
	}
	p.q.Want(int32(pr.roles), func(role int32) bool { return p.want[role] })
	p.hesitate()
	w.Trace("%s boots, wants %v", p, p.want)
	for _, g := range w.logs {
		p.answer(g, w.Latency(pr.Lag))
	}
	p.keepAlive(p.inc)
	p.tune(p.inc)
	p.schedule()
}

// keepAlive lets every reachable log report its end, once in a while.
func (p *simProc) keepAlive(inc int) {
	w := p.w
	w.After(simT/8+w.Span(simT/4), func() {
		if !p.alive || p.inc != inc {
			return
		}
		for _, g := range w.logs {
			if !g.down && !p.logs[g.index].outCut {
				p.answer(g, w.Latency(w.pr.Lag))
			}
		}
		p.keepAlive(inc)
	})
}

// tune changes the clocks' rates, and sets the wall clock before it is too far off. It ticks
// before a step back, or a lease that a step forward had ended unnoticed would be led again.
func (p *simProc) tune(inc int) {
	w := p.w
	w.After(simT/8+w.Span(simT/8), func() {
		if !p.alive || p.inc != inc {
			return
		}
		w.oracle.look(p)
		if off := p.now().Wall.Sub(simEpoch.Add(w.Now)); off.Abs() > w.pr.wall/2 && w.tracer == nil {
			if off < 0 || !p.paused {
				p.tick()
				p.clk.Piece(w.Now)
				p.clk.At.Wall = p.clk.At.Wall.Add(-off)
			}
		}
		if w.R.IntN(4) == 0 {
			w.Rates(&p.clk, w.pr.rho, w.pr.sigma)
		}
		w.oracle.look(p)
		p.schedule()
		p.tune(inc)
	})
}

// simEpoch is the reading of a correct wall clock at true time 0.
const simEpoch = clock.Wall(1000 * time.Hour)

// newClock draws a clock whose wall clock is off true time, without CLOCK_BOOTTIME.
func (w *simWorld) newClock(off time.Duration) seeded.Clock {
	grain := time.Duration(0)
	if w.tracer != nil {
		grain = time.Microsecond
	}
	c := seeded.NewClock(w.Now, clock.Instant{Mono: clock.Mono(w.Point().Truncate(grain)), Wall: simEpoch.Add((w.Now + off).Truncate(grain)), Raw: clock.Raw(w.Point().Truncate(grain))})
	c.Grain = grain
	return c
}

func (p *simProc) hesitate() {
	p.delay = p.w.Span(p.w.pr.jitter)
	if p.w.Calm {
		p.delay = 2*p.w.pr.trip*time.Duration(p.rank) + p.w.Span(p.w.pr.trip)
		if p.w.pr.equal {
			p.delay = 0
		}
	}
}

// answer lets an answer of a log, as of now, reach the process later.
func (p *simProc) answer(g *simLog, later time.Duration) {
	inc, x := p.inc, g.now()
	if !p.w.serves(g, p.String()) {
		return
	}
	upto := x.end()
	p.w.After(later, func() {
		if p.alive && p.inc == inc && !p.paused && !p.logs[g.index].inCut {
			p.read(g, x, upto)
		}
	})
}

// read takes an answer of an incarnation of a log: records up to an offset, or some of them, or
// only that it is alive.
func (p *simProc) read(g *simLog, x *incarnation, upto int64) {
	w, at := p.w, &p.logs[g.index]
	w.oracle.look(p)
	if w.tracer != nil && at.in != x && x != g.now() {
		return // in the specification, reading begins only with the incarnation that serves
	}
	switch {
	case at.in == nil:
		p.begin(g, x, upto)
	case at.in == x:
		p.q.Answered(g.index, p.now())
		if at.next < x.low && at.next <= upto {
			p.begin(g, x, max(upto, x.low)) // the record at its position was deleted
		}
	case slices.Index(g.all, x) < slices.Index(g.all, at.in) && w.R.IntN(2) == 0:
		return // a late answer of a dead incarnation: the client drops it, or cannot tell
	default:
		p.begin(g, x, upto)
	}
	if w.R.IntN(4) == 0 && x == g.now() && !g.down {
		upto = x.end()
	}
	partial := !w.Calm && w.R.IntN(8) == 0
	for at.in == x && at.next < upto && w.Fault == "" {
		p.consume(g, at)
		if w.R.IntN(4) == 0 {
			p.tick()
		}
		if partial && w.R.IntN(2) == 0 {
			break
		}
	}
	if w.Calm {
		p.tick()
	}
	w.oracle.look(p)
	p.schedule()
}

// begin begins to read an incarnation, at an offset that was not deleted.
func (p *simProc) begin(g *simLog, x *incarnation, end int64) {
	w, at := p.w, &p.logs[g.index]
	w.oracle.look(p)
	off := end - w.R.Int64N(min(w.pr.tail, end-x.base)+1)
	switch {
	case w.Calm:
		off = end - 40
	case w.R.IntN(8) == 0:
		off = x.base
	case w.R.IntN(4) == 0:
		off = end
	case w.R.IntN(3) == 0:
		for o := end - 1; o >= max(x.base, end-40); o-- {
			if e := x.records[o-x.base]; e.r.Kind == lease.Snapshot && e.id == x.id {
				off = []int64{o, e.r.Read + 1, e.r.Read + 2}[w.R.IntN(3)]
				break
			}
		}
	}
	off = min(max(off, x.low, x.base), end)
	now := p.now()
	var out []lease.Record
	if l := p.q.Log(g.index); at.in == x && l.Holding() > 0 && w.R.IntN(2) == 0 && w.tracer == nil {
		roles := l.RolesOf(l.Session())
		p.q.ForgetOn(g.index, roles)
		out = p.q.ReleaseOn(g.index, roles, now)
	}
	top := x.host.top
	if w.pr.tops {
		for _, e := range x.records[:end-x.base] {
			top = max(top, e.r.Ballot)
		}
	}
	p.q.Begin(g.index, off, end, top, now)
	at.in, at.next, at.asked, at.hello, at.since, at.lost, at.voice = x, off, 0, 0, 0, 0, false
	w.tracer.begins(p, g.index, x, off)
	w.Trace("%s begins log %s at %d of %d", p, x.id, off, end)
	w.oracle.look(p)
	p.sendTo(g.index, out...)
	p.hesitate()
}

// consume reads the next entry of a log.
func (p *simProc) consume(g *simLog, at *simReading) {
	w, x, o := p.w, at.in, at.next
	e := x.records[o-x.base]
	at.next++
	w.oracle.look(p)
	was, bal, now := p.q.Log(g.index).Known(), p.q.bal, p.now()
	w.tracer.renews(p, -1)
	var ev lease.Event
	mine := e.id == x.id
	if at.misreads == e.r.Kind && e.r.Session.Process != p.String() {
		at.misreads, mine = "", false
	}
	if mine {
		ev = p.q.Read(g.index, o, e.r, now)
	} else {
		ev = p.q.Skip(g.index, o, now)
	}
	w.tracer.reads(p, g.index)
	if ev.Rewound {
		w.count.rewound[p.i]++
	}
	if (ev.Rewound && at.lost == 0 || ev.Differs) && !w.pr.misread {
		w.Note("alarm in a sound log: %s at offset %d of %s", p, o, x.id)
	}
	at.lost = 0
	if ev.Won {
		w.count.valid++
		if p.q.bal != bal {
			w.count.lifted++
		}
	}
	known := p.q.Log(g.index).Known()
	if known && !was {
		w.count.known++
	}
	w.Trace("      %s reads %d of %s, known %v, ballot %d, seen %d", p, o, x.id, known, p.q.bal, p.q.seen)
	if ev.Doubts {
		at.asked, at.voice = now.Mono.Add(w.Span(simT/20)+1), true
	}
	switch at.since++; {
	case e.id != x.id:
	case e.r.Kind == lease.Hello && known && e.r.Session.Process != p.String():
		at.asked = now.Mono.Add(w.Span(simT/20) + 1)
	case e.r.Kind == lease.Snapshot && at.voice:
	case e.r.Kind == lease.Snapshot:
		at.asked, at.since = 0, 0
	case e.r.Kind == lease.Claim || e.r.Kind == lease.Release:
		p.hesitate()
	}
	w.oracle.look(p)
}

func (p *simProc) sendTo(log int, records ...lease.Record) {
	for _, r := range records {
		p.send([]Out{{log, r}})
	}
}

// send hands records to the network. During a cut, they are held back.
func (p *simProc) send(out []Out) {
	w := p.w
	w.tracer.sending(p, out)
	for i, o := range out {
		g, at := w.logs[o.Log], &p.logs[o.Log]
		r := o.Record
		if r.Kind == lease.Snapshot && !w.pr.misread {
			w.oracle.snapshot(w, at.in.id, &r)
		}
		e := &simEntry{at.in.id, &r}
		w.tracer.sent(p, o, e, i == len(out)-1)
		w.Trace("%s sends %s", p, simText(e))
		if at.outCut {
			if w.R.IntN(2) == 0 && !w.Calm {
				at.outbox = append(at.outbox, e)
			}
			continue
		}
		p.dispatch(g, e)
	}
}

// dispatch appends a record late, twice or never, with a report or without one.
func (p *simProc) dispatch(g *simLog, e *simEntry) {
	w, inc := p.w, p.inc
	w.Deliver(w.pr.Network, &p.logs[g.index].lastAppend, e.r.Kind == lease.Claim, func() { w.append(g, e) }, func() {
		if p.alive && p.inc == inc {
			p.q.Failed(g.index, e.r, p.now())
		}
	})
}

func (p *simProc) flush(log int) {
	for _, e := range p.logs[log].outbox {
		p.dispatch(p.w.logs[log], e)
	}
	p.logs[log].outbox = nil
}
