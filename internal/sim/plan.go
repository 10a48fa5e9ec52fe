package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/goneli/neli"
)

const (
	simGroup    = "app"
	simTopic    = simGroup + ".neli"
	simMaxPulse = 10 * time.Second
	simDrain    = 3 * time.Second
	simSession  = 6 * time.Second // of the consumer group: the library's default
)

// profile is the kind of run that a seed makes.
type profile int

const (
	stormy profile = iota // faults strike again and again, then everything heals
	calm                  // no faults strike: nothing is ever lost
	paused                // stormy, and hypervisors pause machines: only tokens are checked
)

// plan is what a seed decides for the whole run.
type plan struct {
	profile    profile
	nomination neli.Nomination
	assignor   string
	timeouts   []time.Duration // T: each start draws one
	drift      float64         // ρ
	slew       float64         // the greatest slew of ordinary clocks
	partitions int
	roles      int  // the largest number that any member contends for
	sameR      bool // all members contend for all roles
	newer      bool // there may be records of a newer version
	rebalance  time.Duration
	jitter     time.Duration
	will
}

func (p plan) String() string {
	return fmt.Sprintf("profile %d, %v, %s, T %v, ρ %v, σ %v, %d partitions, %d roles (all the same: %v), newer %v, J %v, jitter %v\n%v",
		p.profile, p.nomination, p.assignor, p.timeouts, p.drift, p.slew, p.partitions, p.roles, p.sameR, p.newer, p.rebalance, p.jitter, p.will)
}

// longest returns the largest T of any member.
func (p plan) longest() (t time.Duration) {
	for _, x := range p.timeouts {
		t = max(t, x)
	}
	return t
}

// draw makes the plan of a seed.
func draw(rnd *rand.Rand) plan {
	p := plan{
		nomination: oneOf(rnd, neli.NominationAssigned, neli.NominationOpen, neli.NominationOpen),
		assignor:   oneOf(rnd, "cooperative-sticky", "range"),
		timeouts:   []time.Duration{oneOf(rnd, 500*time.Millisecond, time.Second, 2*time.Second, 5*time.Second, 12*time.Second)},
		drift:      oneOf(rnd, 0.0005, 0.02, 0.2),
		slew:       oneOf(rnd, 0, sigma/2, sigma),
		partitions: 1 + rnd.IntN(3),
		rebalance:  time.Duration(rnd.IntN(500)) * time.Millisecond,
		jitter:     time.Duration(rnd.IntN(20)) * time.Millisecond,
		sameR:      rnd.IntN(2) == 0,
		newer:      rnd.IntN(10) == 0,
		will:       drawWill(rnd),
	}
	if lo := p.timeouts[0]; rnd.IntN(3) == 0 { // as during a rolling change of T
		p.timeouts = append(p.timeouts, lo*time.Duration(10+rnd.IntN(41))/10)
	}
	switch n := rnd.IntN(20); {
	case n == 0:
		p.partitions = 4 + rnd.IntN(5)
		p.roles = p.partitions * 2
	case n == 1:
		p.roles = 500 + rnd.IntN(4000)
	default:
		p.roles = p.partitions + rnd.IntN(p.partitions+1)
	}
	switch n := rnd.IntN(20); {
	case n < 2:
		p.profile, p.newer = calm, false
	case n == 2:
		p.profile = paused
	}
	return p
}

// oneOf draws one of its arguments.
func oneOf[T any](rnd *rand.Rand, of ...T) T { return of[rnd.IntN(len(of))] }
