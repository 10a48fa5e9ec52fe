package neli

import "slices"

// Progress: from any state, once the faults end, somebody comes to lead. What a
// group has to live with goes on: a member that can write and reads nothing, or
// that reads and cannot write. The rest is fair: whatever is in flight arrives or
// is lost, claims that were lost are reported as failed, everyone wants to lead,
// everyone reads and decides in every tick.
//
// Each of these ways to go on is run, deterministically; with the slowest clocks.

type modelMode byte

const (
	modeFit  modelMode = iota
	modeDeaf           // reads nothing more
	modeMute           // what it writes is lost, and reported as failed
	modes
)

type modelFair struct {
	w     *modelWorld
	modes [modelProcs]modelMode
	slip  bool // readers of a recreated log begin again and say nothing; else they notice
}

func newModelFair(c *modelConfig) *modelFair {
	return &modelFair{w: newModelWorld(c, modelNewID)}
}

// modelPatience is the number of ticks after which a fit process must have led:
// the silence of what was just read, the lapse of a term that a deaf process
// took, and another silence; and a few ticks to write and read.
func (c *modelConfig) patience() int {
	return int(2*c.rules(0, nil).wait/modelUnit) + c.term + 3
}

// check returns a fault if no leader follows some way to go on from w.
func (f *modelFair) check(w *modelWorld) string {
	n := 1
	for range w.procs {
		n *= int(modes)
	}
	for x := range n {
		fit := false
		for i, y := 0, x; i < len(w.procs); i++ {
			f.modes[i] = modelMode(y % int(modes))
			fit = fit || f.modes[i] == modeFit
			y /= int(modes)
		}
		if !fit {
			continue
		}
		for way := range 4 {
			f.slip = way&2 != 0
			if f.slip && !w.recreated {
				break
			}
			if !f.leads(w, way&1 != 0) {
				return faultStuck + f.describe(way&1 != 0)
			}
		}
	}
	return ""
}

func (f *modelFair) describe(lose bool) string {
	s := ""
	for i := range f.w.procs {
		s += [...]string{" fit", " deaf", " mute"}[f.modes[i]]
	}
	if lose {
		s += ", what is in flight is lost"
	}
	return s + " (processes in canonical order)"
}

// leads goes on from w and reports whether a fit process comes to lead.
func (f *modelFair) leads(from *modelWorld, lose bool) bool {
	w := f.w
	w.set(from)
	if lose {
		w.flight = w.flight[:0]
	}
	f.arrive()
	for i := range w.procs {
		if l := &w.procs[i].lease; l.claiming != 0 && !f.written(i, l.claiming) {
			l.failed(l.me, l.claiming, w.procs[i].at)
		}
	}
	for range w.cfg.patience() {
		for i := range w.procs {
			f.turn(i)
		}
		for i := range w.procs {
			if f.modes[i] == modeFit && w.procs[i].lease.holds(w.procs[i].at) {
				return true
			}
			w.procs[i].at = w.procs[i].at.add(modelUnit)
		}
	}
	return false
}

func (f *modelFair) arrive() {
	f.w.log = append(f.w.log, f.w.flight...)
	f.w.flight = f.w.flight[:0]
}

// written reports whether the claim seq of process i is in the log and unread.
// A deaf process gets no report of a claim that reached the log.
func (f *modelFair) written(i int, seq uint64) bool {
	p := &f.w.procs[i]
	return slices.ContainsFunc(f.w.log, func(r record) bool { return r.member == p.lease.me && r.seq == seq })
}

// turn lets process i read everything and decide until it has nothing to say.
func (f *modelFair) turn(i int) {
	w, p := f.w, &f.w.procs[i]
	for range 4 {
		if p.stray && f.modes[i] != modeDeaf {
			if p.next, p.stray = w.first, false; !f.slip {
				p.lease.start(w.first, p.at)
			}
		}
		for f.modes[i] != modeDeaf && p.next < w.end() {
			o := p.next
			p.next++
			p.lease.consume(w.log[o-w.first], o, p.at)
		}
		r, ok := p.lease.step(p.at, intent{want: true, keep: true, alive: true})
		switch {
		case !ok:
			return
		case f.modes[i] == modeMute:
			p.lease.failed(p.lease.me, r.seq, p.at)
		default:
			w.log = append(w.log, r)
		}
	}
}
