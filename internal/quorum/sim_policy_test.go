package quorum

import (
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// This file has what a simulated process does while it runs, and what happens to it. The process
// does what an elector would do, and sometimes anything that the rules allow.

// tick does everything that is due, and sometimes something that is not.
func (p *simProc) tick() {
	w := p.w
	if !p.alive || p.paused || w.Fault != "" {
		return
	}
	w.oracle.look(p)
	now := p.now()
	p.send(p.q.Tick(now))
	p.letGo(now)
	p.contests(now)
	if w.pr.rogue && !w.Calm {
		p.rogue(now)
	}
	for log := range p.logs {
		if p.logs[log].in != nil {
			p.repeat(log, now)
			p.talk(log, now)
		}
	}
	w.oracle.look(p)
}

// letGo gives up what it leads and no longer wants.
func (p *simProc) letGo(now clock.Instant) {
	var gone []int32
	for role := range int32(len(p.want)) {
		if _, _, term := p.q.Term(role); term && !p.want[role] {
			gone = append(gone, role)
		}
	}
	p.q.Forget(gone)
	p.send(p.q.Release(gone, now))
}

// contests contests vacant roles after a delay.
func (p *simProc) contests(now clock.Instant) {
	for _, role := range p.q.Changed() {
		if !p.q.wants(role) || !p.q.Vacant(role, now) {
			delete(p.contest, role)
		} else if _, ok := p.contest[role]; !ok {
			p.contest[role] = now.Mono.Add(p.delay)
		}
	}
	var due []int32
	for role := range int32(p.w.pr.roles) {
		if at, ok := p.contest[role]; ok && now.Mono >= at {
			delete(p.contest, role)
			due = append(due, role)
		}
	}
	p.send(p.q.Contest(due, now))
}

// rogue claims and gives up roles on random logs.
func (p *simProc) rogue(now clock.Instant) {
	w := p.w
	lists := make([][]int32, len(p.logs))
	for log := range p.logs {
		if p.logs[log].in == nil {
			continue
		}
		for role := range int32(w.pr.roles) {
			if p.want[role] && w.R.IntN(3) == 0 && p.q.Log(log).MayClaim(role, now) {
				lists[log] = append(lists[log], role)
			}
			if w.R.IntN(60) == 0 {
				p.q.ForgetOn(log, []int32{role})
				p.send(p.q.Release([]int32{role}, now))
			}
		}
	}
	p.send(p.q.claim(lists, now))
	if w.R.IntN(50) == 0 {
		p.q.GiveUpClaims(w.R.IntN(len(p.logs)), now, now)
	}
}

// repeat makes Releases again that have not come back within T/4.
func (p *simProc) repeat(log int, now clock.Instant) {
	switch at := &p.logs[log].releaseAt; {
	case !p.q.Log(log).Owing():
		*at = 0
	case *at == 0:
		*at = now.Mono.Add(clock.Resend(simT))
	case now.Mono >= *at:
		*at = now.Mono.Add(clock.Resend(simT))
		p.sendTo(log, p.q.UnreleasedOn(log, now)...)
	}
}

// talk sends Beats, Snapshots and Hellos.
func (p *simProc) talk(log int, now clock.Instant) {
	w, at, l := p.w, &p.logs[log], p.q.Log(log)
	if b := time.Duration(w.pr.beat * float64(simT)); l.Holding() > 0 && now.Mono.Sub(p.q.logs[log].beatAt) >= b {
		if r, ok := p.q.Beat(log, now); ok {
			p.sendTo(log, r)
		}
	}
	if at.asked != 0 && now.Mono >= at.asked || w.Maybe(w.pr.snapshot) && !w.Calm || at.since > 64 {
		if !at.voice || l.Asked() {
			p.sendTo(log, p.q.Snapshot(log, now)...)
		}
		at.asked, at.since, at.voice = 0, 0, false
	}
	if wait := time.Duration(w.pr.beat * float64(simT)); !l.Known() && (at.hello == 0 || now.Mono.Sub(at.hello) >= wait) {
		at.hello = now.Mono
		p.sendTo(log, p.q.Word(log, lease.Hello, now))
	}
}

// schedule asks for a tick when the next thing is due, or in about a beat.
func (p *simProc) schedule() {
	w := p.w
	if !p.alive || p.paused {
		return
	}
	now := p.now()
	beat := time.Duration(float64(simT) * w.pr.beat)
	left := beat/2 + w.Span(beat)
	due := func(at clock.Mono) {
		if d := at.Sub(now.Mono); d < left && (d > -simT/1000 || w.Calm) {
			left = max(d, 0)
		}
	}
	due(p.q.Due(now))
	for role := range int32(w.pr.roles) {
		if at, ok := p.contest[role]; ok {
			due(at)
		}
	}
	for log := range p.logs {
		if p.q.Log(log).Holding() > 0 {
			due(p.q.logs[log].beatAt.Add(beat))
		}
		if p.logs[log].releaseAt != 0 && p.logs[log].in != nil {
			due(p.logs[log].releaseAt)
		}
		if p.logs[log].asked != 0 {
			due(p.logs[log].asked)
		}
	}
	d := p.clk.TrueIn(left, false) + w.Span(w.pr.late)
	if w.Calm {
		d = max(p.clk.TrueIn(left, false), simT/20_000)
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

// faults schedules everything that may happen to a process.
func (p *simProc) faults() {
	w, pr, r := p.w, &p.w.pr, p.w.R
	w.Every(pr.pause, func() {
		if p.alive && !p.paused {
			p.paused = true
			if p.w.lie == takesPaused {
				p.w.bury(p.String())
			}
			inc := p.inc
			w.After(w.Spread(0.01, 5), func() { p.resume(inc) })
		}
	})
	w.Every(pr.crash, func() { p.crash(); w.After(w.Spread(0.001, 5), p.boot) })
	for log := range pr.logs {
		w.Every(pr.cut, func() {
			if p.alive {
				p.cutIn(log, !p.logs[log].inCut && r.IntN(2) == 0)
			}
		})
		w.Every(pr.cut, func() {
			if p.alive {
				p.cutOut(log, !p.logs[log].outCut && r.IntN(2) == 0)
			}
		})
		w.Every(pr.jump, func() {
			if p.alive && !p.paused && p.logs[log].in != nil && !p.logs[log].inCut {
				p.begin(w.logs[log], p.logs[log].in, p.logs[log].in.end())
			}
		})
	}
	w.Every(pr.wish, func() {
		if !p.alive {
			return
		}
		role := r.IntN(pr.roles)
		p.want[role] = !p.want[role]
		if r.IntN(8) == 0 {
			clear(p.want)
		}
		p.wish()
	})
}

func (p *simProc) wish() {
	p.q.Want(int32(p.w.pr.roles), func(role int32) bool { return p.want[role] })
	p.schedule()
}

func (p *simProc) crash() {
	if p.alive {
		p.w.Trace("%s crashes", p)
		if p.w.Maybe(p.w.pr.Gasp) {
			p.tick()
		}
		p.alive = false
		p.w.oracle.look(p)
		p.mourn()
	}
}

// resume ends a pause. The process may do what is due before it reads anything.
func (p *simProc) resume(inc int) {
	if !p.alive || p.inc != inc || !p.paused {
		return
	}
	p.w.oracle.look(p)
	p.paused = false
	for log := range p.logs {
		p.lose(log)
		p.wake(log)
	}
}

// lose skips some of the records that were waiting for the process. A link that counts a record before
// it passes the record on loses records like this.
func (p *simProc) lose(log int) {
	w, at := p.w, &p.logs[log]
	if at.in == nil || !w.Maybe(w.pr.lose) {
		return
	}
	if waiting := at.in.end() - at.next; waiting > 0 {
		n := 1 + w.R.Int64N(min(3, waiting))
		at.next, at.lost = at.next+n, at.lost+n
		w.count.lost += int(n)
		w.Trace("%s loses %d records of %s, up to %d", p, n, at.in.id, at.next-1)
	}
}

func (p *simProc) wake(log int) {
	if p.w.R.IntN(2) == 0 {
		p.tick()
	}
	if g := p.w.logs[log]; !g.down {
		p.answer(g, p.w.Latency(p.w.pr.Lag))
	}
	p.schedule()
}

func (p *simProc) cutIn(log int, cut bool) {
	if p.logs[log].inCut = cut; !cut && !p.paused {
		p.wake(log)
	}
}

func (p *simProc) cutOut(log int, cut bool) {
	if p.logs[log].outCut = cut; !cut {
		p.flush(log)
	}
}

// reachOnly cuts a process off from all but these logs.
func (p *simProc) reachOnly(logs ...int) {
	for log := range p.logs {
		cut := !slices.Contains(logs, log)
		p.cutIn(log, cut)
		p.cutOut(log, cut)
	}
}
