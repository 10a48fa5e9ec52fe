package neli_test

import (
	"math/rand/v2"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// Non-exclusive mode promises the opposite of exclusiveness, one fault at a time:
// that there is a leader (design: "Non-exclusive mode in full"). Here one fault
// strikes a settled cluster, and what no process led for is measured.

// trouble is one fault and what it may cost.
type trouble struct {
	name   string
	strike func(w *world, p *proc) (undo func())
	dead   bool // the process runs no more, so that its presuming helps nobody
}

func cutOff(links nelitest.Link) func(*world, *proc) func() {
	return func(w *world, p *proc) func() {
		w.broker.CutOff(p.id, links)
		return func() { w.broker.Restore(p.id, links) }
	}
}

func nothing() {}

var troubles = []trouble{
	{"a process joins", func(w *world, p *proc) func() {
		q := w.start("", p.group)
		return func() { w.leave(q) }
	}, false},
	{"rebalance", func(w *world, _ *proc) func() {
		w.broker.Rebalance()
		return nothing
	}, false},
	{"session expires", func(w *world, p *proc) func() {
		w.broker.Expire(p.id)
		return nothing
	}, false},
	{"close", func(w *world, p *proc) func() {
		w.leave(p)
		return func() { w.start("", p.group) }
	}, false},
	{"rolling restart", rollingRestart, false},
	{"cut off", cutOff(nelitest.All), false},
	{"cut off from the log", cutOff(nelitest.Appends | nelitest.Acks | nelitest.Reads), false},
	{"cut off from the group", cutOff(nelitest.Group), false},
	{"cannot write", cutOff(nelitest.Appends), false},
	{"application hangs", func(w *world, p *proc) func() {
		p.hang(w.upTo(4 * simMaxPulse))
		return nothing
	}, false},
	{"crash", func(w *world, p *proc) func() {
		w.crash(p)
		return func() { w.start("", p.group) }
	}, true},
	{"suspended", func(w *world, p *proc) func() {
		p.suspend(false)
		return p.wake
	}, true},
}

// rollingRestart closes one process after the other, each with a successor.
func rollingRestart(w *world, p *proc) func() {
	for _, q := range w.living() {
		if q.group != p.group {
			continue
		}
		w.leave(q)
		w.start(q.name, q.group)
		w.until(time.Minute, func() bool { return q.State() == neli.StateClosed || w.over() })
		w.until(w.timeout/2, w.over)
	}
	return nothing
}

// drawPresence makes the plan of a cluster in which one fault strikes at a time.
func drawPresence(rnd *rand.Rand) plan {
	p := draw(rnd)
	p.mode, p.timeout, p.drift = neli.NonExclusive, 3*simSession, 0.0005
	p.groups = 1 + rnd.IntN(2)
	return p
}

// hardship is a run of one fault after the other, each in a settled cluster.
func (w *world) hardship() {
	groups := []string{simGroup, "other"}[:w.groups]
	for range 2 + w.rnd.IntN(2) {
		for _, g := range groups {
			w.start("", g)
		}
	}
	for range 4 {
		w.settle(groups)
		p := w.victim()
		f := oneOf(w.rnd, troubles...)
		w.seen.count("trouble: " + f.name)
		w.say(p.id, "trouble: %s", f.name)
		w.forgetGaps()
		undo := f.strike(w, p)
		w.until(w.upTo(2*w.timeout), w.over)
		w.say("", "undone")
		undo()
		w.until(w.timeout, w.over)
		w.noGap(f)
	}
	w.end()
}

// settle waits until every group leads every role, and those who lead have done so
// for longer than anything that is left of the fault before.
func (w *world) settle(groups []string) {
	led := func() bool {
		for _, g := range groups {
			for role := range w.roles {
				if !w.present(role, g) {
					return false
				}
			}
		}
		return true
	}
	if !w.until(2*time.Minute, func() bool { return led() || w.over() }) {
		w.violated("not every group leads every role")
	}
	w.until(w.timeout+simSession, w.over)
}

// present reports whether a process that runs leads role; of any group if group is
// empty.
func (w *world) present(role int, group string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.procs {
		if (group == "" || p.group == group) && !p.asleep.Load() && p.IsLeaderOf(role) {
			return true
		}
	}
	return false
}

// watchPresence measures for how long a role has no leader.
func (w *world) watchPresence(tick time.Duration) {
	w.presence.Lock()
	defer w.presence.Unlock()
	for role := range w.roles {
		if w.present(role, "") {
			w.absent[role] = 0
			continue
		}
		w.absent[role] += tick
		w.gap = max(w.gap, w.absent[role])
	}
}

func (w *world) forgetGaps() {
	w.presence.Lock()
	defer w.presence.Unlock()
	clear(w.absent)
	w.gap = 0
}

// noGap asserts what is promised of the time without a leader.
func (w *world) noGap(f trouble) {
	w.presence.Lock()
	gap := w.gap
	w.presence.Unlock()
	bound := time.Duration(0)
	if f.dead && w.groups == 1 {
		const learn, polls = 500 * time.Millisecond, 300 * time.Millisecond // of a rebalance; whatever is behind timers
		broadcast := w.timeout / 20
		bound = simSession + 2*w.rebalance + learn + broadcast + polls
	}
	if gap > bound {
		w.violated("%s: no leader for %v, promised %v", f.name, gap, bound)
	}
	w.seen.longest(map[bool]string{true: "without leader: ", false: "without leader, two groups: "}[w.groups == 1]+f.name, gap)
}
