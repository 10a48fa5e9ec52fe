package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// distances decides which members are farther from the log than the others, and by how much. It
// has a random sequence of its own. Seeds without far members run as they would without this code.
type distances struct {
	rnd  *rand.Rand    // used only by the scheduling goroutine
	far  int           // how many members are far at most
	half bool          // half of the members are far at most, whatever far says
	most time.Duration // how much longer round trips of far members are at most; 0: no member is far
}

// distance is how much longer records take from a far member to the log, and from the log to it.
type distance struct{ appends, reads time.Duration }

func (d distance) String() string {
	return fmt.Sprintf("its records take %v longer to the log, and the log's %v longer to it", d.appends, d.reads)
}

const (
	leastFar = 20 * time.Millisecond
	mostFar  = 400 * time.Millisecond
)

// drawDistances draws distances for members with a lease of t at least. A member whose round trips
// take t/4 claims nothing, so round trips of far members take less even by the fastest clocks. near
// is the longest round trip of the other members.
func drawDistances(seed uint64, t, near time.Duration, drift float64) distances {
	d := distances{rnd: rand.New(rand.NewPCG(seed, 47))}
	if d.rnd.IntN(4) > 0 {
		return d
	}
	d.far = 1 + d.rnd.IntN(3)
	d.half = d.far > 2
	if most := min(mostFar, time.Duration(float64(t)/4/(1+drift)/(1+sigma))-near); most > leastFar {
		d.most = most
	}
	return d
}

// next draws the distance of a member that starts beside others, of which some are far.
func (d *distances) next(others, far int) distance {
	most := d.far
	if d.half {
		most = (others + 1) / 2
	}
	if d.most == 0 || far >= most || d.rnd.IntN(2) == 0 {
		return distance{}
	}
	trip := leastFar + time.Duration(d.rnd.Int64N(int64(d.most-leastFar)))
	return oneOf(d.rnd, distance{appends: trip}, distance{reads: trip}, distance{trip / 2, trip / 2})
}

// place puts a process that starts near the log or far from it.
func (w *world) place(p *proc) {
	others, far := w.living(), 0
	for _, q := range others {
		if q.far != (distance{}) {
			far++
		}
	}
	p.far = w.distances.next(len(others), far)
	if p.far != (distance{}) {
		p.slowAppends(0)
		p.slowReads(0)
		w.say(p.id, "is far: %v", p.far)
	}
}

// slowAppends delays a process's records to the log, in addition to its distance.
func (p *proc) slowAppends(by time.Duration) { p.w.broker.Delay(p.id, p.far.appends+by) }

// slowReads does the same with records from the log to the process.
func (p *proc) slowReads(by time.Duration) { p.w.broker.SlowReads(p.id, p.far.reads+by) }

// place puts a process that starts near the logs or far from them.
func (w *smallWorld) place(p *smallProc) {
	others, far := w.living(), 0
	for _, q := range others {
		if q.far != (distance{}) {
			far++
		}
	}
	p.far = w.distances.next(len(others), far)
	if p.far != (distance{}) {
		p.slow(0, 0)
		w.say(p.id, "is far: %v", p.far)
	}
}

// slow delays a process's records to the logs, and the logs' records to it, in addition to its distance.
func (p *smallProc) slow(appends, reads time.Duration) {
	p.w.net.Slow(p.id, p.far.appends+appends, p.far.reads+reads)
}
