package lease

import (
	"math/rand/v2"
	"testing"
	"time"
)

// originProfile has short logs that are whole, and many starts: processes learn the fold by reading
// the log from its origin. Elections raise the leader epoch, and lose nothing.
func originProfile(r *rand.Rand) simProfile {
	p := plainProfile(r)
	if r.IntN(4) == 0 {
		p = huntProfile(r)
	}
	u := p.unit
	p.horizon, p.tail, p.full, p.remove = 12*u, 1<<30, of(r, 0.5, 1), 0
	p.jump, p.crash, p.chatter = u*time.Duration(of(r, 1, 2, 10))/2, u*time.Duration(of(r, 3, 5)), 1
	p.noise, p.elect = u*time.Duration(of(r, 0, 5, 20)), u*time.Duration(of(r, 0, 0, 5, 20))
	p.newer, p.snapshot = of(r, 0, 0, 0.2), of(r, 0, 0, 0.02)
	p.limit, p.origin = 20_000, true
	return p
}

// lossProfile has logs that are lost, all or their tail. The leader epoch then grows, as under KRaft.
// All leases are equal, since a process waits for its own T only, unless the origin rule applies.
func lossProfile(r *rand.Rand) simProfile {
	p := originProfile(r)
	p.ts, p.newer, p.opaque, p.noise = p.ts[:1], 0, false, 0
	p.elect, p.lose, p.loseTail = p.unit*time.Duration(of(r, 1, 5, 20)), p.unit*time.Duration(of(r, 1, 3, 6)), r.IntN(2) == 0
	return p
}

// TestLostLogs loses logs. No rule can prevent two leaders then. But neither of them may know the
// fold because it has read the log from its origin.
func TestLostLogs(t *testing.T) {
	simulate(t, 1500, func(seed uint64) *simWorld {
		w := newSimWorld(seed, lossProfile)
		w.Run(w.pr.horizon, nil)
		return w
	})
}

// losses schedules elections and losses.
func (w *simWorld) losses() {
	w.Every(w.pr.elect, func() { w.epoch++ })
	w.Every(w.pr.lose, func() {
		keep := int64(0)
		if w.pr.loseTail {
			keep = w.R.Int64N(int64(len(w.log)) + 1)
		}
		w.lose(keep)
	})
}

// lose loses the records from an offset on. Half of the processes are cut off then, so leaders among
// them find out late.
func (w *simWorld) lose(keep int64) {
	w.lossy = true
	w.incarnation++
	w.epoch += 1 + w.R.IntN(2)
	w.log, w.hist, w.truth = w.log[:keep], w.hist[:keep], newNewerFolds()
	w.truth.alone = true
	for o, e := range w.log {
		w.truth.step(e, int64(o), longAgo)
	}
	w.Trace("   log lost from %d on, epoch %d", keep, w.epoch)
	for _, p := range w.procs {
		if p.alive && !p.inCut && w.R.IntN(2) == 0 {
			p.inCut = true
			w.After(time.Duration(w.R.ExpFloat64()*float64(w.pr.unit)/2), func() {
				if p.inCut = false; p.alive && !p.paused && p.reading {
					p.wake()
				}
			})
		}
	}
}

// lost reports whether the process notices that its log has lost records. If its position is beyond
// the end, the process dies. If the last record that it read now has another epoch, it begins again.
func (p *simProc) lost() bool {
	w := p.w
	if p.incarnation == w.incarnation {
		return false
	}
	switch n := int64(len(w.log)); {
	case p.next > n:
		p.die()
		w.After(w.Spread(0.001, 5), p.boot)
		return true
	case p.next > 0 && p.epoch >= 0 && w.log[p.next-1].epoch != p.epoch:
		p.begin()
		return true
	}
	p.incarnation = w.incarnation
	return false
}

// ofOrigin reports whether two leaders count as a fault. In a log that has lost records they do only
// if one of them has read the log from its origin.
func (w *simWorld) ofOrigin(two ...*simProc) bool {
	for _, p := range two {
		if p.byOrigin {
			return true
		}
	}
	return !w.lossy
}

// newOrigin returns a process that reads a log from its origin.
func (s *script) newOrigin(name string) *Lease {
	l := New(Rules{Process: name, T: time.Second, History: 10})
	l.Begin(0, true, s.now)
	l.Origin(true)
	return l
}
