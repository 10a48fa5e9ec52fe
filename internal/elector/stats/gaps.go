package stats

import (
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/roster"
)

// gaps are the times in which a process read nothing from the logs of a shard, so that it does not know
// what was written then. They are for counters only: the silence of a holder counts as time without a
// leader only where this process would have read the holder.
type gaps struct {
	read  clock.Instant // when something was last read, or this process woke up
	step  clock.Raw     // when this process last did anything
	blind bool          // it has read nothing since `read`, although it should have
	past  []gap         // oldest first
}

// gap is a time in which nothing was read.
type gap struct {
	from, to clock.Raw
	known    clock.Raw // the log is known to have stood still until then
	asleep   bool      // the process did not run, and the log may have gone on
}

// maxGaps limits how many gaps are remembered.
const maxGaps = 16

// Rest is how long a process rests at most.
const Rest = time.Second

// idle is how long a process may read nothing until it takes the log to have stood still. Members of
// a small group announce themselves twice in that time.
const idle = 2 * roster.HelloEvery

// stepped notes that this process does something. It has slept if it did nothing for much longer
// than it may rest. deaf reports that it should have read something. unknown reports that this
// process does not know what was in the log since the last step.
func (g *gaps) stepped(deaf bool, t time.Duration, now clock.Instant) (unknown bool) {
	if g.read == (clock.Instant{}) {
		g.read = now
	}
	if g.step != 0 && now.Raw.Sub(g.step) > Rest+min(Rest, t/2) && !g.blind {
		g.add(gap{from: g.step, known: g.step, to: now.Raw, asleep: true})
		g.read, deaf, unknown = now, false, true
	}
	g.step = now.Raw
	g.blind = g.blind || deaf
	return unknown || g.blind
}

// heard notes that something was read; at is when the logs that count were last read.
func (g *gaps) heard(at, now clock.Instant) {
	switch {
	case at == g.read:
		return
	case g.blind:
		g.add(gap{from: g.read.Raw, known: g.read.Raw, to: now.Raw})
	case now.Raw.Sub(g.read.Raw) > idle:
		g.add(gap{from: g.read.Raw, known: now.Raw, to: now.Raw})
	}
	g.read, g.blind = at, false
}

// CutOff returns for how long this process has read nothing, although it should have.
func (g *gaps) CutOff(now clock.Instant) time.Duration {
	if !g.blind {
		return 0
	}
	return max(0, now.Raw.Sub(g.read.Raw))
}

// Proved notes that an own record sent at a time was read back, and so everything that was in the log before.
func (g *gaps) Proved(sent clock.Raw) {
	g.past = slices.DeleteFunc(g.past, func(p gap) bool { return p.asleep && p.to <= sent })
	for i := range g.past {
		if p := &g.past[i]; !p.asleep {
			p.known = max(p.known, min(sent, p.to))
		}
	}
}

func (g *gaps) add(p gap) {
	if len(g.past) == maxGaps { // join the oldest two: too little time counts then, not too much
		g.past[1] = gap{from: g.past[0].from, known: g.past[0].known, to: g.past[1].to}
		g.past = slices.Delete(g.past, 0, 1)
	}
	g.past = append(g.past, p)
}

// silence returns for how long between two times a holder was silent as far as this process knows:
// it read the log, and the log did not stand still.
func (g *gaps) silence(from, to clock.Raw) time.Duration {
	return g.without(from, to, func(p gap) clock.Raw { return p.from })
}

// vacancy returns for how long between two times nobody held a role whose former holder's lease was
// over: a log that stood still shows that, too.
func (g *gaps) vacancy(from, to clock.Raw) time.Duration {
	return g.without(from, to, func(p gap) clock.Raw { return p.known })
}

func (g *gaps) without(from, to clock.Raw, begin func(gap) clock.Raw) time.Duration {
	d := max(0, to.Sub(from))
	for _, p := range g.past {
		d -= max(0, min(to, p.to).Sub(max(from, begin(p))))
	}
	return max(0, d)
}
