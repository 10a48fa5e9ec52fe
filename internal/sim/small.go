package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/nelitest"
)

// smallWorld is one seed's cluster on a majority of nelitest's small logs. It has an adversary
// and an oracle of its own: there is no Kafka here, no group, and no offset that every process
// knows. The oracle checks what users rely on: at most one leader of each role at every true
// instant; tokens that increase and belong to one term each; one end for each Acquired; and, once
// all faults have ended, a leader for every role within a bounded time.
type smallWorld struct {
	smallPlan
	journal
	opts      *Options
	rnd       *rand.Rand // used only by the scheduling goroutine
	net       *nelitest.SmallLogs
	posts     *posts // sentinels, in runs that have any
	born      int
	undo      []func() // used only by the scheduling goroutine
	ending    sync.WaitGroup
	distances distances

	mu     sync.Mutex // guards the fields below
	procs  []*smallProc
	tokens map[int]int64       // role → the largest token led
	owners map[term]*smallProc // the process that had the term
}

// smallPlan is what a seed decides for the whole run.
type smallPlan struct {
	t, trip              time.Duration
	drift, slew          float64
	logs, members, roles int
}

func (p smallPlan) String() string {
	return fmt.Sprintf("T %v, round trip %v, ρ %v, σ %v, %d logs, %d members, %d roles", p.t, p.trip, p.drift, p.slew, p.logs, p.members, p.roles)
}

func drawSmall(rnd *rand.Rand) smallPlan {
	p := smallPlan{
		t:     oneOf(rnd, 300*time.Millisecond, 500*time.Millisecond, time.Second),
		drift: oneOf(rnd, 0.0005, 0.02, 0.2), slew: oneOf(rnd, 0, sigma/2, sigma),
		logs: oneOf(rnd, 3, 3, 5), members: 3 + rnd.IntN(3), roles: 1 + rnd.IntN(4),
	}
	p.trip = p.t / time.Duration(oneOf(rnd, 200, 100, 30))
	return p
}

// RunSmall runs one seed on small logs, and reports the first violation of a promise with a
// transcript. Wall clocks are within half of T of true time. A log that restarts is empty and has
// another id. A log that comes back from an image of its memory is excluded.
func RunSmall(t *testing.T, opts Options) {
	if opts.Seen == nil {
		opts.Seen = NewSeen()
	}
	var w *smallWorld
	inBubble(t, func() string { return w.transcript() }, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(opts.Seed, 37))
		w = &smallWorld{journal: journal{T: t, began: time.Now()}, opts: &opts, smallPlan: drawSmall(rnd), rnd: rnd, tokens: map[int]int64{}, owners: map[term]*smallProc{}}
		w.net = nelitest.NewSmallLogs(w.logs, w.trip)
		w.distances = drawDistances(opts.Seed, w.t, 2*w.trip, w.drift)
		w.posts = newPosts(&w.journal, &opts, sentinel.Registration{Group: simGroup, T: w.t, Rho: w.drift}, network{w.net.Provider, w.net.Kill})
		w.say("", "seed %d: %v", opts.Seed, w.smallPlan)
		defer func() {
			if t.Failed() {
				t.Log(w.transcript())
			}
			if opts.Transcript != nil {
				opts.Transcript(w.transcript())
			}
		}()
		stop := make(chan struct{})
		var watching sync.WaitGroup
		watching.Go(func() { w.sample(stop) })
		for range w.members {
			w.start("")
		}
		w.storm()
		w.heals()
		w.recovers()
		close(stop)
		watching.Wait()
		for _, p := range w.living() {
			w.leave(p)
		}
		w.ending.Wait()
		w.posts.close()
	})
}

// SuiteSmall is Suite on small logs.
func SuiteSmall(t *testing.T, seeds uint64, opts Options) {
	opts.run = RunSmall
	Suite(t, seeds, opts)
}

// storm lets faults strike for a while.
func (w *smallWorld) storm() {
	w.pass(w.upTo(2 * w.t))
	length := 12*w.t + w.upTo(12*w.t)
	for began := time.Now(); time.Since(began) < length && !w.over(); w.pass(w.upTo(w.t)) {
		f := smallFaults[w.rnd.IntN(len(smallFaults))]
		if w.posts != nil && w.rnd.IntN(2) == 0 {
			f = smallSentinelFaults[w.rnd.IntN(len(smallSentinelFaults))]
		}
		p := w.victim()
		w.opts.Seen.Count("fault: " + f.name)
		w.say(p.id, "fault: %s", f.name)
		f.strike(w, p)
	}
}

// heals ends all faults, and waits until no record is late any more.
func (w *smallWorld) heals() {
	w.say("", "everything heals")
	for _, undo := range w.undo {
		undo()
	}
	w.healAll()
	w.pass(smallLate * w.t)
	w.say("", "all is well")
}

func (w *smallWorld) healAll() {
	for log := range w.logs {
		w.net.Start(log)
		for _, p := range w.living() {
			w.net.Restore(p.id, log)
			p.slow(0, 0)
		}
	}
}

// recovers asserts that every role is led within the bound, and then stays led. The bound is made
// of the design's constants: two waits by the slowest clocks, since the last records may have
// restarted a wait, and the delay of failed Claims.
func (w *smallWorld) recovers() {
	slow := time.Duration(float64(w.t)*(1+w.drift)/(1-w.drift)/(1-w.drift)/(1-w.slew)) + time.Millisecond
	bound, healed := 2*slow+6*w.t, time.Now()
	for !w.allLed() && time.Since(healed) < bound && !w.over() {
		w.pass(w.t / 50)
	}
	if !w.allLed() {
		w.violated("not all roles are led %v after the last fault", bound)
	}
	w.opts.Seen.longest(fmt.Sprintf("all led again, T %v, ρ %v", w.t, w.drift), time.Since(healed))
	w.pass(3 * w.t)
	for role := range w.roles {
		// A hand-over may be in progress. The work takes T/5 to end, and then the others leave the
		// role to the successor for T/2 at most. That is less than a lapse costs.
		for began := time.Now(); !w.led(role) && time.Since(began) < w.t/5+w.t/2; {
			w.pass(w.t / 50)
		}
		if !w.led(role) {
			w.violated("not all roles are led any more, without a fault: role %d", role)
		}
	}
}

func (w *smallWorld) allLed() bool {
	for role := range w.roles {
		if !w.led(role) {
			return false
		}
	}
	return true
}

func (w *smallWorld) led(role int) bool {
	return slices.ContainsFunc(w.living(), func(p *smallProc) bool { return p.IsLeaderOf(role) })
}

// pass lets time pass, and keeps wall clocks within bounds meanwhile.
func (w *smallWorld) pass(d time.Duration) {
	for end := time.Now().Add(d); ; {
		for _, p := range w.living() {
			w.tune(p)
		}
		left := time.Until(end)
		if left <= 0 {
			return
		}
		time.Sleep(min(left, w.t/8))
	}
}

// tune sets a wall clock that is too far from true time.
func (w *smallWorld) tune(p *smallProc) {
	off := p.clock.Now().Wall.Sub(smallEpoch.Add(time.Since(w.began)))
	if off.Abs() > w.t*15/100 {
		p.clock.set(w.upTo(w.t/5)-w.t/10-off, 0)
	}
}

func (w *smallWorld) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rnd.Int64N(int64(d)))
}

func (w *smallWorld) living() []*smallProc {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.procs), func(p *smallProc) bool { return p.leaving.Load() })
}
