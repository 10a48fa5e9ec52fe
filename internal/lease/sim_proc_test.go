package lease

import (
	"fmt"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/seeded"
)

// simProc is a simulated process around the Lease that ships. It does what an elector would do,
// in good order or bad, and suffers what the adversary does to it.
type simProc struct {
	w *simWorld
	i int

	l     *Lease
	newer *newerProc // nil: a process of version 1
	t     time.Duration
	clk   seeded.Clock
	inc   int // counts boots
	ticks int // number of the tick that was asked for last: only that one is due

	alive, paused, reading bool
	inCut, outCut          bool
	origin, byOrigin       bool  // the log was read from its origin so far; the fold is known by that
	incarnation, epoch     int   // of the log, as far as its client noticed; of the last record read, −1 if none was
	next                   int64 // read position
	want                   []bool
	delay                  time.Duration // until it claims what it may
	outbox                 []*simEntry
	lastAppend             time.Duration

	beaten, asked, released clock.Instant // when it last sent a Beat, a Hello, Releases
	answer                  clock.Instant // when it will answer with a Snapshot
	led                     []int64       // by watched role: the token it led by
}

func (p *simProc) now() clock.Instant { return p.clk.Read(p.w.Now) }

// boot starts the process again, with other clocks, another T, and perhaps another version.
func (p *simProc) boot() {
	w, pr := p.w, &p.w.pr
	if p.alive {
		return
	}
	w.count.boots++
	p.inc++
	*p = simProc{w: w, i: p.i, inc: p.inc, ticks: p.ticks + 1, alive: true, inCut: p.inCut && !w.Calm, outCut: p.outCut && !w.Calm, led: p.led}
	p.t = pr.ts[w.R.IntN(len(pr.ts))]
	p.clk = w.newClock()
	w.Rates(&p.clk, pr.rho, pr.sigma)
	p.l = New(Rules{Process: fmt.Sprintf("%c.%d", 'a'+p.i, p.inc), Name: "process <" + string(rune('a'+p.i)) + ">", T: p.t, Rho: pr.rho, History: 64})
	if w.Maybe(pr.newer) {
		p.newer = &newerProc{Lease: p.l}
	}
	p.want = make([]bool, pr.roles)
	for role := range p.want {
		p.want[role] = pr.wantAll || w.Maybe(pr.wanting)
	}
	if p.led == nil {
		for range w.oracle.roles {
			p.led = append(p.led, none)
		}
	}
	inc := p.inc
	w.After(w.Latency(pr.Lag), func() { p.start(inc) })
}

// newClock draws a clock whose machine may lack CLOCK_BOOTTIME. No two processes' clocks agree.
func (w *simWorld) newClock() seeded.Clock {
	boot := w.R.IntN(4) > 0
	grain := time.Duration(0)
	if w.tracer != nil {
		grain = time.Microsecond
	}
	point := func() time.Duration { return w.Point().Truncate(grain) }
	at := clock.Instant{Mono: clock.Mono(point()), Wall: clock.Wall(point()), Raw: clock.Raw(point())}
	if boot {
		at.Boot = clock.Boot(point())
	}
	c := seeded.NewClock(w.Now, at)
	c.Grain = grain
	return c
}

// start resolves the start offset; reading begins a little later.
func (p *simProc) start(inc int) {
	if !p.alive || p.inc != inc || p.reading {
		return
	}
	if p.paused || p.inCut {
		p.w.After(p.w.pr.unit/10, func() { p.start(inc) })
		return
	}
	p.begin()
}

// position chooses an offset that was not deleted.
func (p *simProc) position() int64 {
	w, r := p.w, p.w.R
	end := int64(len(w.log))
	off := end - r.Int64N(min(w.pr.tail, end)+1)
	switch {
	case w.Calm:
		off = max(0, end-40)
	case w.Maybe(w.pr.full):
		off = 0
	case r.IntN(4) == 0:
		off = end
	case r.IntN(3) == 0:
		for o := end - 1; o >= max(0, end-40); o-- {
			if e := w.log[o].r; e != nil && e.Kind == Snapshot {
				off = []int64{o, e.Read + 1, e.Read + 2}[r.IntN(3)]
				break
			}
		}
	}
	return min(max(off, w.low), end)
}

// begin begins again, at boot or at a jump. Half the time it first forgets what it holds, without a Release, as the
// elector does when its log was lost.
func (p *simProc) begin() {
	w := p.w
	w.oracle.look(p)
	off := p.position()
	now := p.now()
	if p.reading {
		w.count.jumps++
		if w.R.IntN(2) == 0 {
			p.forget(p.held())
		}
	}
	empty := off == 0 && len(w.log) == 0
	if p.newer != nil {
		p.newer.begin(off, empty, now)
	} else {
		p.l.Begin(off, empty, now)
	}
	p.reading, p.next = true, off
	p.origin, p.byOrigin, p.incarnation, p.epoch = w.pr.origin && off == 0 && w.low == 0, false, w.incarnation, -1
	w.tracer.begins(p, off, empty)
	p.hesitate()
	w.Trace("%s begins at %d of %d: T %v", p, off, len(w.log), p.t)
	w.oracle.look(p)
	p.wake()
}

func (p *simProc) String() string {
	v := ""
	if p.newer != nil {
		v = " v2"
	}
	return fmt.Sprintf("%v%s", p.l.Session(), v)
}

func (p *simProc) hesitate() { p.delay = p.w.Span(p.w.pr.jitter) }

// held returns the roles that the session holds and has not forgotten.
func (p *simProc) held() []int32 {
	var roles []int32
	if p.l.Holding() > 0 {
		for role := range p.want {
			if _, mine := p.l.Mine(int32(role)); mine {
				roles = append(roles, int32(role))
			}
		}
	}
	return roles
}

// forget ends the leadership of roles.
func (p *simProc) forget(roles []int32) {
	p.l.Forget(roles)
	p.w.tracer.forgets(p, roles)
}

// wake ends a pause. The process may do what is due before it reads anything.
func (p *simProc) wake() {
	if p.w.R.IntN(2) == 0 {
		p.tick()
	}
	inc, end := p.inc, int64(len(p.w.log))-1
	p.w.After(0, func() { p.poll(inc, end) })
	p.schedule()
}

// poll reads up to an offset, or a part of that.
func (p *simProc) poll(inc int, upto int64) {
	w := p.w
	if !p.alive || p.inc != inc || p.paused || p.inCut || !p.reading {
		return
	}
	if w.R.IntN(4) == 0 {
		upto = int64(len(w.log)) - 1
	}
	if p.lost() {
		return
	}
	if p.next < w.low {
		p.begin() // the record at its position was deleted
		return
	}
	w.oracle.look(p)
	partial, did := !w.Calm && w.R.IntN(8) == 0, false
	for p.next <= upto && p.next < int64(len(w.log)) && w.Fault == "" {
		p.consume(p.next)
		did = true
		if w.R.IntN(4) == 0 {
			p.tick()
		}
		if partial && w.R.IntN(2) == 0 {
			w.After(w.Latency(3), func() { p.poll(inc, upto) })
			break
		}
	}
	if did {
		p.schedule()
	}
}

// consume reads the entry at o.
func (p *simProc) consume(o int64) {
	w := p.w
	e := w.log[o]
	p.next = o + 1
	if e.gap {
		p.origin = false
		return
	}
	p.epoch, p.origin = e.epoch, p.origin && e.epoch == 0
	p.l.Origin(p.origin)
	was, bound := p.l.Known(), time.Duration(0)
	if !was {
		bound = p.l.join.bound
	}
	ev := p.read(o, e)
	w.tracer.reads(p)
	if (ev.Rewound || ev.Differs) && !w.lossy {
		w.Note("alarm in a sound log: %s at offset %d (%s)", p, o, simText(e))
	}
	if !was && !p.l.Known() && p.l.join.bound < bound {
		w.count.bounded++
	}
	if !was && p.l.Known() {
		switch {
		case ev.Origin:
			w.count.byOrigin++
			p.byOrigin, p.answer = true, p.now().Add(w.Span(p.t/20))
		case e.r.Kind == Claim:
			w.count.byFresh++
		case e.r.State.Parts > 1:
			w.count.byParts++
			w.count.bySnapshot++
		default:
			w.count.bySnapshot++
		}
	}
	w.Trace("      %s reads %d, known %v, V %.3f T old", p, o, p.l.Known(), float64(p.now().Age(p.l.V()))/float64(p.t))
	w.oracle.folds(p, o)
	w.oracle.look(p)
	if e.r == nil || e.r.Kind != Hello {
		p.hesitate()
	} else if p.l.Known() && e.r.Session.Process != p.l.rules.Process {
		p.answer = p.now().Add(w.Span(p.t / 20))
	}
	if e.r != nil && e.r.Kind == Snapshot {
		p.answer = clock.Instant{}
	}
}

// read passes an entry to the Lease, as an elector does.
func (p *simProc) read(o int64, e *simEntry) Event {
	w, now := p.w, p.now()
	switch {
	case p.newer != nil:
		return p.newer.read(o, e, now)
	case e.newer:
		w.count.newer++
		if ev := p.l.ReadNewer(o, now); ev.Rewound {
			return ev
		}
		for _, token := range p.led {
			if token != none {
				w.count.ledOver++
				break
			}
		}
		return Event{}
	case e.r == nil:
		w.count.skips++
		return p.l.Skip(o, now)
	}
	return p.l.Read(o, e.r, now)
}

// schedule asks for a tick when something is due next, or in about a beat.
func (p *simProc) schedule() {
	w := p.w
	if !p.alive || !p.reading || p.paused {
		return
	}
	now := p.now()
	beat := time.Duration(float64(p.t) * w.pr.beat)
	d := beat/2 + w.Span(beat)
	due := func(left time.Duration, raw bool) {
		switch {
		case left > 0:
			d = min(d, p.clk.TrueIn(left, raw))
		case left > -w.pr.unit/1000 || w.Calm:
			d = min(d, w.Span(w.pr.unit/100))
		}
	}
	if !p.l.Known() {
		due(p.l.FreshAt().Sub(now.Raw)+p.delay, true)
	} else {
		for _, role := range w.oracle.roles {
			if at := p.l.FreeAt(role); p.want[role] && at > 0 {
				if _, mine := p.l.Mine(role); !mine {
					due(at.Sub(now.Raw)+p.delay, true)
				}
			} else if w.Calm && p.want[role] {
				due(p.delay, true)
			}
		}
		if p.l.Holding() > 0 {
			due(clock.Hold(p.t)-now.Age(p.l.V()), false)
		}
		if p.answer != longAgo {
			due(p.answer.Mono.Sub(now.Mono), false)
		}
	}
	if !w.Calm {
		d += w.Span(w.pr.late)
	} else {
		d = max(d, w.pr.unit/500)
	}
	p.ticks++
	inc, n := p.inc, p.ticks
	w.After(d, func() {
		if p.alive && p.inc == inc && p.ticks == n && !p.paused {
			p.tick()
			p.schedule()
		}
	})
}

// send hands a record to the producer. During a cut, it is held back.
func (p *simProc) send(r Record, newer bool, old *State) {
	w := p.w
	e := w.encode(&r, newer)
	e.old = old
	w.Trace("%s sends %s", p, simText(e))
	w.tracer.sends(p, &r)
	if p.outCut {
		if w.R.IntN(2) == 0 {
			p.outbox = append(p.outbox, e)
		}
		return
	}
	p.dispatch(e)
}

// dispatch appends a record late, twice or never, with a report or without one.
func (p *simProc) dispatch(e *simEntry) {
	w, inc := p.w, p.inc
	w.Deliver(w.pr.Network, &p.lastAppend, e.r.Kind == Claim, func() { w.append(e) }, func() {
		if p.alive && p.inc == inc {
			p.l.Failed(e.r.Session, e.r.Seq)
		}
	})
}

func (p *simProc) sendAll(records []Record) {
	for _, r := range records {
		p.send(r, p.newer != nil && !p.w.Maybe(p.w.pr.olden), nil)
	}
}
