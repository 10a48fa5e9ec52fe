package lease

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// TestAllRolesAreLedOnceFaultsEnd lets the adversary work for ten units; then all faults end.
// With a simple and sane policy every process then learns the fold, and every wanted role is led,
// within W of the longest lease allowed, plus twice the longest lease in use, plus a unit for
// late records, jitter and beats. Without the liveness rules (docs/design.md) a role would stay
// without a leader for ever.
func TestAllRolesAreLedOnceFaultsEnd(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("all restart %v", restart), func(t *testing.T) {
			simulate(t, 400, func(seed uint64) *simWorld { return live(seed, restart) })
		})
	}
}

// live is one run: chaos, then calm.
func live(seed uint64, restart bool) *simWorld {
	w := newSimWorld(seed, func(r *rand.Rand) simProfile {
		p := plainProfile(r)
		p.limit = 1 << 30
		if !restart {
			p.newer = 0 // an old version claims nothing while a newer version writes, by design
		}
		return p
	})
	w.Run(w.pr.horizon, nil)
	if w.Fault != "" {
		return w
	}
	w.Now = max(w.Now, w.pr.horizon)
	w.settle(restart)
	longest := time.Duration(0)
	for _, t := range w.pr.ts {
		longest = max(longest, t)
	}
	// The clocks may be slow or fast. What is in flight lands within a tenth of a unit.
	wait := time.Duration(float64(clock.Wait(clock.Tmax, w.pr.rho)) / (1 - w.pr.rho))
	bound := wait + 2*longest + w.pr.unit
	from, calm := w.Now, false
	w.Run(from+bound, func() bool { calm = calm || w.settled(); return calm })
	if !calm {
		w.Note("not everything is led %v after all faults have ended, by leases of at most %v: %s", bound, longest, w.state())
	}
	return w
}

// settle ends all faults.
func (w *simWorld) settle(restart bool) {
	w.Calm = true
	w.pr.newer = 0 // a process that boots now runs the old version
	w.pr.beat, w.pr.jitter = min(w.pr.beat, 0.25), w.pr.unit/25
	w.pr.snapshot, w.pr.hasty, w.pr.chatter = 0, 0, 0
	w.Soon(w.pr.unit / 10) // all that is in flight has landed
	wanted := make([]bool, w.pr.roles)
	for _, p := range w.procs {
		p.inCut, p.outCut, p.lastAppend = false, false, 0
		if restart && p.alive {
			p.alive = false
			w.oracle.look(p)
		}
		switch inc := p.inc; {
		case !p.alive:
			p.boot()
		case p.paused:
			p.resume(inc)
		case p.reading:
			p.hesitate()
			p.wake()
		}
		p.flush()
		for role, want := range p.want {
			wanted[role] = wanted[role] || want
		}
	}
	for role, want := range wanted {
		if !want {
			w.procs[0].want[role] = true
		}
	}
}

// settled reports whether everybody knows the fold and every wanted role is led.
func (w *simWorld) settled() bool {
	for _, p := range w.procs {
		if !p.alive || !p.reading || !p.l.Known() {
			return false
		}
		for role, want := range p.want {
			if want && !w.isLed(int32(role)) {
				return false
			}
		}
	}
	return true
}

func (w *simWorld) isLed(role int32) bool {
	for _, p := range w.procs {
		if _, leads := p.l.Leads(role, p.now()); leads {
			return true
		}
	}
	return false
}

// state describes who knows the fold, and who leads which role.
func (w *simWorld) state() string {
	s := ""
	for _, p := range w.procs {
		s += fmt.Sprintf("%s T %v knows %v; ", p, p.t, p.l.Known())
	}
	for role := range int32(w.pr.roles) {
		s += fmt.Sprintf("role %d led %v; ", role, w.isLed(role))
	}
	return s
}
