package sim

import (
	"sync"
	"time"

	"github.com/goneli/neli/nelitest"
)

// smallFault is something that the adversary does to processes or logs.
type smallFault struct {
	name   string
	strike func(w *smallWorld, p *smallProc)
}

// smallLate is by how many leases a record may be late.
const smallLate = 2

// long is how long most faults last.
func (w *smallWorld) long() time.Duration { return w.upTo(3 * w.t) }

// later undoes a fault after a while, or when everything heals.
func (w *smallWorld) later(undo func()) {
	once := sync.OnceFunc(undo)
	w.undo = append(w.undo, once)
	time.AfterFunc(w.long(), once)
}

func (w *smallWorld) anyLog() int { return w.rnd.IntN(w.logs) }

// victim draws the process for the next fault, often a leader.
func (w *smallWorld) victim() *smallProc {
	ps := w.living()
	role := w.rnd.IntN(w.roles)
	for _, p := range ps {
		if w.rnd.IntN(2) == 0 && p.IsLeaderOf(role) {
			return p
		}
	}
	return ps[w.rnd.IntN(len(ps))]
}

// cutSmall cuts a process's links to one log, or to all.
func cutSmall(links nelitest.Link, all bool) func(*smallWorld, *smallProc) {
	return func(w *smallWorld, p *smallProc) {
		one := w.anyLog()
		for log := range w.logs {
			if all || log == one {
				w.net.CutOff(p.id, log, links)
				w.later(func() { w.net.Restore(p.id, log) })
			}
		}
	}
}

var smallFaults = []smallFault{
	{"a log is down", func(w *smallWorld, _ *smallProc) {
		log := w.anyLog()
		w.net.Stop(log)
		w.later(func() { w.net.Start(log) })
	}},
	{"a log forgets", func(w *smallWorld, _ *smallProc) { w.net.Forget(w.anyLog()) }},
	{"two logs forget, one soon after the other", func(w *smallWorld, _ *smallProc) {
		w.net.Forget(w.anyLog())
		w.pass(w.upTo(w.t))
		w.net.Forget(w.anyLog())
	}},
	{"all logs forget", func(w *smallWorld, _ *smallProc) {
		for log := range w.logs {
			w.net.Forget(log)
		}
	}},
	{"cut off from a log", cutSmall(nelitest.LinkAll, false)},
	{"cannot append to a log", cutSmall(nelitest.LinkAppends, false)},
	{"cannot read a log", cutSmall(nelitest.LinkReads, false)},
	{"cut off from all logs", cutSmall(nelitest.LinkAll, true)},
	{"cannot append", cutSmall(nelitest.LinkAppends, true)},
	{"cannot read", cutSmall(nelitest.LinkReads, true)},
	{"reaches a minority", func(w *smallWorld, p *smallProc) {
		first := w.anyLog()
		for i := range w.logs/2 + 1 {
			log := (first + i) % w.logs
			w.net.CutOff(p.id, log, nelitest.LinkAll)
			w.later(func() { w.net.Restore(p.id, log) })
		}
	}},
	{"two halves, and one machine moves", func(w *smallWorld, _ *smallProc) {
		side := w.rnd.Uint32()
		w.halves(side)
		w.pass(w.upTo(2 * w.t))
		w.halves(side ^ 1<<w.anyLog())
		w.later(w.halved(0))
	}},
	{"slow", func(w *smallWorld, p *smallProc) {
		p.slow(w.upTo(smallLate*w.t), w.upTo(w.t/2))
		w.later(func() { p.slow(0, 0) })
	}},
	{"some appends are late", func(w *smallWorld, p *smallProc) {
		p.slow(w.upTo(smallLate*w.t), 0)
		w.pass(w.upTo(w.t / 2))
		p.slow(0, 0)
	}},
	{"suspended, and its links lose what waited", func(w *smallWorld, p *smallProc) {
		p.slow(0, w.upTo(2*w.t))
		w.pass(w.upTo(w.t))
		for log := range w.logs {
			if w.rnd.IntN(2) == 0 {
				w.net.Lose(p.id, log)
			}
		}
		p.slow(0, 0)
	}},
	{"crash", func(w *smallWorld, p *smallProc) {
		w.crash(p)
		w.start(oneOf(w.rnd, "", p.name))
	}},
	{"crash, and a log with it", func(w *smallWorld, p *smallProc) {
		w.crash(p)
		w.net.Forget(w.anyLog())
		w.start("")
	}},
	{"close", func(w *smallWorld, p *smallProc) {
		w.leave(p)
		w.start(oneOf(w.rnd, "", p.name))
	}},
	{"slewed", func(w *smallWorld, p *smallProc) { p.clock.slewTo(w.anySlew()) }},
}

// halves separates the machines whose bit is set from the others. The member and the log with the
// same number are on one machine. If there are fewer logs than members, some machines have none.
func (w *smallWorld) halves(side uint32) { w.halved(side)() }

// halved returns a function that does what halves does.
func (w *smallWorld) halved(side uint32) func() {
	return func() {
		for i, p := range w.living() {
			for log := range w.logs {
				if side>>i&1 == side>>log&1 {
					w.net.Restore(p.id, log)
				} else {
					w.net.CutOff(p.id, log, nelitest.LinkAll)
				}
			}
		}
	}
}
