package lease

import (
	"slices"
	"time"
)

// faults schedules everything that may happen to a process.
func (p *simProc) faults() {
	w, pr, r := p.w, &p.w.pr, p.w.R
	w.Every(pr.pause, func() { p.pause(r.IntN(4) == 0) })
	w.Every(pr.crash, func() {
		if p.alive {
			w.Trace("%s crashes", p)
			p.die()
			w.After(w.Spread(0.001, 5), p.boot)
		}
	})
	w.Every(pr.cut, func() {
		if p.inCut = !p.inCut && r.IntN(2) == 0; !p.inCut && p.alive && !p.paused && p.reading {
			p.wake()
		}
	})
	w.Every(pr.cut, func() {
		if p.outCut = !p.outCut && r.IntN(2) == 0; !p.outCut {
			p.flush()
		}
	})
	w.Every(pr.wish, p.wishes)
	w.Every(pr.jump, func() {
		if p.alive && p.reading && !p.paused && !p.inCut {
			p.begin()
		}
	})
	w.Every(pr.drift, func() {
		if p.alive {
			w.Rates(&p.clk, pr.rho, pr.sigma)
			p.schedule()
		}
	})
	w.Every(pr.step, func() {
		if p.alive {
			w.oracle.look(p)
			d := []time.Duration{1, 1, 1, -1}[r.IntN(4)] * w.Spread(0.01, 5)
			if d < 0 { // otherwise a lease that a step forward had ended unnoticed would be led again
				p.tick()
				d *= time.Duration(p.awake())
			}
			p.step(d)
			w.oracle.look(p)
			p.schedule()
		}
	})
}

// step sets the wall clock. Setting it back makes no age smaller, since Mono goes on. But without
// Boot it is never set back: that would hide a suspension, which no lease survives.
func (p *simProc) step(d time.Duration) {
	if d >= 0 || p.clk.At.Boot != 0 {
		p.clk.Piece(p.w.Now)
		p.clk.At.Wall = p.clk.At.Wall.Add(d)
	}
}

// awake returns 1 if the process runs, else 0.
func (p *simProc) awake() int {
	if p.paused || !p.reading {
		return 0
	}
	return 1
}

func (p *simProc) flush() {
	for _, e := range p.outbox {
		p.dispatch(e)
	}
	p.outbox = nil
}

// pause stops the process for a while. During a suspension its clocks stand still as well.
func (p *simProc) pause(suspension bool) {
	w := p.w
	if !p.alive || p.paused {
		return
	}
	p.paused = true
	if suspension {
		p.clk.Piece(w.Now)
		p.clk.Suspended = true
	}
	w.Trace("%s pauses (suspended %v)", p, suspension)
	if w.lie == takesPaused {
		w.bury(p.l.rules.Process)
	}
	inc := p.inc
	w.After(w.Spread(0.01, 5), func() { p.resume(inc) })
}

func (p *simProc) resume(inc int) {
	if !p.alive || p.inc != inc || !p.paused {
		return
	}
	p.w.oracle.look(p)
	p.paused = false
	p.clk.Piece(p.w.Now)
	p.clk.Suspended = false
	p.w.Trace("%s goes on", p)
	p.w.oracle.look(p)
	if p.reading {
		p.wake()
	}
}

// wishes changes what the process wants: one role, a range of them, or all.
func (p *simProc) wishes() {
	w := p.w
	if !p.alive {
		return
	}
	at, n := w.R.IntN(len(p.want)), 1
	if len(p.want) > 100 {
		n = 1 + w.R.IntN(len(p.want)-at)
	}
	for role := at; role < at+n; role++ {
		p.want[role] = !p.want[role]
	}
	if w.R.IntN(6) == 0 {
		clear(p.want)
	}
	p.schedule()
}

// some returns a random part of roles.
func (w *simWorld) some(roles []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(roles), func(int32) bool { return w.R.IntN(2) == 0 })
}
