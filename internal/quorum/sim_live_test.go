package quorum

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/seeded"
)

// How a majority of logs behaves in quiet times, with latencies around half a round trip of T/100,
// good clocks, and processes of equal rank. The bounds follow from the rules: W(T) where everything
// was lost, plus some round trips. The worst of hundreds of runs must stay within them.
func TestAllRolesAreLedSoonInQuietTimes(t *testing.T) {
	const trip = simT / 100
	silence := clock.Wait(simT, calmRho)
	for _, c := range []struct {
		name        string
		logs, procs int
		fault       func(w *simWorld) // happens once everything is led; nil: the cold start is timed
		within      time.Duration
	}{
		{"cold start", 1, 5, nil, silence + 8*trip},
		{"cold start", 3, 3, nil, silence + 8*trip},
		{"cold start", 5, 5, nil, silence + 8*trip},
		{"leader crash", 1, 5, func(w *simWorld) { w.leader().crash() }, silence + 12*trip},
		{"leader crash", 3, 5, func(w *simWorld) { w.leader().crash() }, silence + 14*trip},
		{"leader crash", 5, 5, func(w *simWorld) { w.leader().crash() }, silence + 14*trip},
		{"leader and its log crash", 3, 3, crashWithLog, silence + 16*trip},
		{"leader and its log crash", 5, 5, crashWithLog, silence + 16*trip},
		{"all logs forget", 3, 5, forgetAll, silence + 14*trip},
		{"leader gives up everything", 3, 5, giveUpAll, 8 * trip},
		{"leader crash while a log is down", 3, 5, func(w *simWorld) { w.stop(w.logs[0]); w.leader().crash() }, silence + 24*trip},
	} {
		t.Run(fmt.Sprintf("%s, %d logs", c.name, c.logs), func(t *testing.T) {
			var took []time.Duration
			simulateQuiet(t, 60, c.logs, c.procs, func(w *simWorld) {
				begun := time.Duration(0)
				if c.fault != nil {
					w.Run(w.Now+20*simT, w.allLed)
					w.Run(w.Now+2*simT+w.Span(simT), nil)
					begun = w.Now
					c.fault(w)
				}
				w.Run(begun+10*simT, w.allLed)
				took = append(took, w.Now-begun)
				if !w.allLed() || w.Now-begun > c.within {
					w.Note("led after %v, wanted within %v (led at all: %v)", w.Now-begun, c.within, w.allLed())
				}
			})
			slices.Sort(took)
			if len(took) > 0 {
				t.Logf("led after %v, at most %v, wanted within %v", took[len(took)/2], took[len(took)-1], c.within)
			}
		})
	}
}

// TestSplitVotesAreDecided gives all candidates the same rank and no jitter. They claim at the same instant
// on all logs, and each wins some. All but one must give way, and new attempts must come further
// and further apart.
func TestSplitVotesAreDecided(t *testing.T) {
	const trip = simT / 100
	silence := clock.Wait(simT, calmRho)
	for _, c := range []struct{ logs, procs int }{{3, 3}, {3, 5}, {5, 5}} {
		t.Run(fmt.Sprintf("%d candidates on %d logs", c.procs, c.logs), func(t *testing.T) {
			var took []time.Duration
			simulateQuiet(t, 60, c.logs, c.procs, func(w *simWorld) {
				w.pr.equal = true
				for _, p := range w.procs {
					p.hesitate()
				}
				w.Run(20*simT, w.allLed)
				if took = append(took, w.Now); !w.allLed() || w.Now > silence+40*trip {
					w.Note("split vote: led after %v (led at all: %v)", w.Now, w.allLed())
				}
			})
			slices.Sort(took)
			t.Logf("led after %v, at most %v", took[len(took)/2], took[len(took)-1])
		})
	}
}

// TestLeaderLeadsOnWhileLogsFail lets single logs stop, or all logs forget everything in turn. The
// leader must go on with the same token.
func TestLeaderLeadsOnWhileLogsFail(t *testing.T) {
	for name, fault := range map[string]func(w *simWorld, turn int){
		"one log is down":      func(w *simWorld, turn int) { w.stop(w.logs[len(w.logs)-1]) },
		"one log forgets":      func(w *simWorld, turn int) { w.forget(w.logs[0]) },
		"logs forget in turn":  func(w *simWorld, turn int) { w.forget(w.logs[turn%len(w.logs)]) },
		"logs restart in turn": func(w *simWorld, turn int) { g := w.logs[turn%len(w.logs)]; w.stop(g); w.start(g) },
	} {
		t.Run(name, func(t *testing.T) {
			simulateQuiet(t, 20, 3, 4, func(w *simWorld) {
				w.Run(20*simT, w.allLed)
				w.Run(w.Now+2*simT, nil)
				terms := w.count.terms
				for turn := range 10 {
					fault(w, turn)
					w.Run(w.Now+3*simT/2, func() bool { return !w.allLed() })
					if !w.allLed() || w.count.terms != terms {
						w.Note("not led all the time: %d terms began, turn %d", w.count.terms-terms, turn)
						return
					}
				}
			})
		})
	}
}

// TestAllRolesAreLedOnceFaultsEnd lets the adversary work; then all faults end. Every wanted role
// must be led within twice the time of a fresh Claim, plus 6 T for split votes and late records.
func TestAllRolesAreLedOnceFaultsEnd(t *testing.T) {
	simulate(t, 200, func(seed uint64) *simWorld {
		w := newSimWorld(seed, plainProfile)
		w.Run(w.pr.horizon, nil)
		if w.Fault != "" {
			return w
		}
		w.Now = max(w.Now, w.pr.horizon)
		w.settleDown()
		begun := w.Now
		// The limit is many times the events needed, plus those in flight. Beyond it the world only ticks.
		w.Limit = w.Happened + 10*w.Pending() + 200_000
		slow := time.Duration(float64(clock.Wait(simT, w.pr.rho)) / (1 - w.pr.rho) / (1 - w.pr.sigma))
		bound := 2*slow + 6*simT // in the end, failed Claims are repeated after 1.5 T
		w.Run(begun+bound, w.allLed)
		if !w.allLed() && w.Fault == "" {
			w.Note("not everything is led %v after all faults have ended: %s", bound, w.state())
		}
		return w
	})
}

const calmRho = 0.005

// calmProfile returns a world without an adversary.
func calmProfile(logs, procs int) func(*rand.Rand) simProfile {
	return func(r *rand.Rand) simProfile {
		return simProfile{horizon: 1 << 60, limit: 1 << 30, logs: logs, procs: procs, roles: 4, rho: calmRho, wall: simT / 10,
			beat: 0.2, trip: simT / 100, wantAll: true, Network: seeded.Network{Ordered: true, Lag: 1, Slow: 1}}
	}
}

// simulateQuiet runs a fixed number of quiet worlds, one after the other.
func simulateQuiet(t *testing.T, seeds, logs, procs int, run func(w *simWorld)) {
	t.Helper()
	if seeded.Race || testing.Short() {
		seeds = min(seeds, 3)
	}
	for seed := range uint64(seeds) {
		w := newSimWorld(seed+1, calmProfile(logs, procs))
		w.Calm = true
		w.Forget()
		for _, p := range w.procs {
			p.boot()
		}
		run(w)
		if w.Fault != "" {
			t.Fatalf("seed %d: %s\n%s", seed+1, w.Fault, w.state())
		}
	}
}

// settleDown ends all faults.
func (w *simWorld) settleDown() {
	w.Calm = true
	w.pr.beat, w.pr.late, w.pr.trip = min(w.pr.beat, 0.2), 0, simT/100
	w.Soon(simT / 10) // all that is in flight has landed
	wanted := make([]bool, w.pr.roles)
	for _, p := range w.procs {
		p.q.RoundTrip(w.pr.trip)
		for log := range p.logs {
			p.logs[log].inCut, p.logs[log].outCut, p.logs[log].lastAppend = false, false, 0
			p.flush(log)
		}
		if !p.alive {
			p.boot()
		}
		p.paused = false
		for role, want := range p.want {
			wanted[role] = wanted[role] || want
		}
	}
	for _, g := range w.logs {
		w.start(g)
	}
	for role, want := range wanted {
		if !want {
			w.procs[0].want[role] = true
		}
	}
	for _, p := range w.procs {
		p.wish()
	}
}

// ledBy returns the leader of a role, or nil.
func (w *simWorld) ledBy(role int32) *simProc {
	for _, p := range w.procs {
		if p.alive {
			if _, leads := p.q.Leads(role, p.now()); leads {
				return p
			}
		}
	}
	return nil
}

// allLed reports whether every wanted role is led.
func (w *simWorld) allLed() bool {
	for role := range int32(w.pr.roles) {
		wanted := false
		for _, p := range w.procs {
			wanted = wanted || p.alive && p.want[role]
		}
		if wanted && w.ledBy(role) == nil {
			return false
		}
	}
	return true
}

// leader returns the leader of role 0.
func (w *simWorld) leader() *simProc { return w.ledBy(0) }

func crashWithLog(w *simWorld) {
	p := w.leader()
	w.stop(w.logs[p.i%len(w.logs)])
	p.crash()
}

func forgetAll(w *simWorld) {
	for _, g := range w.logs {
		w.forget(g)
	}
	w.Run(w.Now+2*simT, func() bool { return w.leader() == nil })
}

func giveUpAll(w *simWorld) {
	p := w.leader()
	clear(p.want)
	p.wish()
	p.tick()
}

// state describes who leads what.
func (w *simWorld) state() string {
	s := ""
	for _, p := range w.procs {
		s += fmt.Sprintf("%s alive %v ballot %d", p, p.alive, p.q.bal)
		for log, v := range p.q.logs {
			s += fmt.Sprintf(" log %d known %v holding %d back %d;", log, v.lease.Known(), v.lease.Holding(), v.back)
		}
		for role := range int32(w.pr.roles) {
			if u := p.q.unit(role); u != nil {
				s += fmt.Sprintf(" role %d token %d mine %b counts %b;", role, u.token, u.mine, u.counts)
			}
		}
		s += "\n"
	}
	return s
}
