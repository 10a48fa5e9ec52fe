package trial

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
)

// Do carries out one trial, and restores the group to three members unless the trial was First.
func (g *Group) Do(ctx context.Context, kind peers.Kind, r *Results) error {
	trials := map[peers.Kind]func(context.Context, *Results) error{peers.First: g.first, peers.Restart: g.restart,
		peers.Kill: g.kill, peers.Stop: g.stop, peers.Hand: g.hand}
	if err := trials[kind](ctx, r); err != nil {
		return err
	}
	if kind == peers.First {
		return nil // it was the group's only trial
	}
	if err := g.Fill(ctx, peers.Size); err != nil {
		return err
	}
	return pause.For(ctx, g.system.Settle)
}

// swift is the longest sampling interval for members that are timed from their start.
const swift = 5 * time.Millisecond

// first starts a group from nothing.
func (g *Group) first(ctx context.Context, r *Results) error {
	g.every = min(g.every, swift) // this is the group's only trial
	var began time.Duration
	err := g.calmly(func() error {
		began = witness.Now()
		_, err := g.start(ctx, 0, 1, 2)
		return err
	})
	if err != nil {
		return err
	}
	_, run, err := g.awaitLeader(ctx, began, nil)
	if err != nil {
		return err
	}
	r.take(func() { r.First = append(r.First, measure.Milliseconds(run.First.After-began)) })
	return nil
}

// restart closes all members, the leader last, and starts one process again, or all if one alone cannot lead.
func (g *Group) restart(ctx context.Context, r *Results) error {
	leader, err := g.anyMoment(ctx, min(g.system.Beat, 200*time.Millisecond))
	if err != nil {
		return err
	}
	g.calm.Lock()
	defer g.calm.Unlock()
	for _, c := range append(g.others(leader), leader) {
		g.note(func() { c.out = true })
		if _, err := c.do(ctx, member.Command{Do: member.DoClose}); err != nil {
			return err
		}
		g.remove(c)
	}
	usual := g.every
	defer func() { g.every = usual }()
	g.every = min(g.every, swift)
	seats := []int{0}
	if g.system.Inside {
		seats = []int{0, 1, 2}
	}
	began := witness.Now()
	if _, err := g.start(ctx, seats...); err != nil {
		return err
	}
	_, run, err := g.awaitLeader(ctx, began, nil)
	if err != nil {
		return err
	}
	r.take(func() { r.Restarted = append(r.Restarted, measure.Milliseconds(run.First.After-began)) })
	return g.sample(ctx, usual)
}

// others returns all candidates but one.
func (g *Group) others(than *candidate) []*candidate {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(g.present), func(c *candidate) bool { return c == than })
}

// strike sends the leader a signal, and waits for the next leader. If the lease is so short that the start of another process
// would disturb the trial, none is started meanwhile.
func (g *Group) strike(ctx context.Context, old *candidate, s syscall.Signal) (at time.Duration, next witness.Run, err error) {
	if g.system.Lease <= brief {
		g.calm.Lock()
		defer g.calm.Unlock()
	}
	g.note(func() { old.out = true })
	if at, err = old.signal(s); err != nil {
		return at, next, err
	}
	_, next, err = g.awaitLeader(ctx, at, old)
	return at, next, err
}

// brief is the longest lease that needs a quiet machine.
const brief = 500 * time.Millisecond

// anyMoment returns the leader at a random moment between two of its beats. Otherwise each fault
// would come at the same moment.
func (g *Group) anyMoment(ctx context.Context, beat time.Duration) (*candidate, error) {
	if err := pause.For(ctx, rand.N(beat)); err != nil {
		return nil, err
	}
	return g.leader(ctx)
}

func (g *Group) kill(ctx context.Context, r *Results) error {
	if g.system.Sentinel {
		return g.killWatched(ctx, r)
	}
	old, err := g.anyMoment(ctx, g.system.Beat)
	if err != nil {
		return err
	}
	at, run, err := g.strike(ctx, old, syscall.SIGKILL)
	g.remove(old)
	if err != nil {
		return err
	}
	r.take(func() { r.Killed = append(r.Killed, measure.Milliseconds(run.First.After-at)) })
	return nil
}

// stop suspends the leader until another one leads, and for longer than its lease.
func (g *Group) stop(ctx context.Context, r *Results) error {
	old, err := g.anyMoment(ctx, g.system.Beat)
	if err != nil {
		return err
	}
	at, run, err := g.strike(ctx, old, syscall.SIGSTOP)
	if err == nil {
		// Also long enough for the sampler to notice the gap.
		err = pause.For(ctx, at+max(g.system.Lease*5/4, 3*member.Gap)-witness.Now())
	}
	if err != nil {
		return err
	}
	return g.wake(ctx, r, old, measure.Milliseconds(run.First.After-at))
}

// wake resumes a suspended leader, and records what it answers.
func (g *Group) wake(ctx context.Context, r *Results, old *candidate, stopped float64) error {
	var seen int
	g.note(func() { seen = old.samples })
	woken, err := old.signal(syscall.SIGCONT)
	if err != nil {
		return err
	}
	// Its first answer reports the gap, whatever the answer is.
	if err := g.await(ctx, "a woken leader to be fenced", func() bool { return old.samples > seen && !old.track.Leads() }); err != nil {
		return err
	}
	if _, err := old.do(ctx, member.Command{Do: member.DoReady}); err != nil {
		return err
	}
	var runs witness.Runs
	g.note(func() { runs = old.track.Since(woken) })
	double, met, err := g.both(ctx, old, runs)
	if err != nil {
		return err
	}
	r.take(func() {
		r.Stopped = append(r.Stopped, stopped)
		r.Woken++
		if met {
			r.WokenLed++
		}
		r.Double = append(r.Double, measure.Milliseconds(double))
	})
	return nil
}

// both returns for how long a woken leader and others led at once. It waits until a leader has reported.
func (g *Group) both(ctx context.Context, old *candidate, woken witness.Runs) (double time.Duration, met bool, err error) {
	now := witness.Now()
	err = g.await(ctx, "news of the leader", func() bool {
		return slices.ContainsFunc(g.present, func(c *candidate) bool {
			last, ok := c.track.Last()
			return ok && last.Last.Before >= now
		})
	})
	g.note(func() {
		old.out = false
		for _, c := range g.present {
			if c != old {
				length, m := witness.Together(woken, c.track.All())
				double, met = double+length, met || m
			}
		}
	})
	return double, met, err
}

// hand closes the leader. No process is started meanwhile.
func (g *Group) hand(ctx context.Context, r *Results) error {
	old, err := g.anyMoment(ctx, min(g.system.Beat, 200*time.Millisecond))
	if err != nil {
		return err
	}
	g.calm.Lock()
	defer g.calm.Unlock()
	if err := g.sample(ctx, fine(g.system)); err != nil {
		return err
	}
	g.note(func() { old.out = true })
	asked := witness.Now()
	if _, err := old.do(ctx, member.Command{Do: member.DoClose}); err != nil {
		return err
	}
	_, next, err := g.awaitLeader(ctx, asked, old)
	if err != nil {
		return err
	}
	g.remove(old)
	last, _ := old.track.Last()
	r.take(func() {
		r.Asked = append(r.Asked, measure.Milliseconds(next.First.After-asked))
		r.Gap = append(r.Gap, measure.Milliseconds(max(0, next.First.After-last.Last.Before)))
	})
	return g.sample(ctx, g.every)
}

// Results of one system. Times are in milliseconds.
type Results struct {
	First []float64 // start of three processes → the first answer "I lead"
	// All members had closed: start of one process, or of all if Inside → the first answer "I lead".
	Restarted []float64 `json:",omitempty"`

	Killed  []float64 // SIGKILL of the leader → the next one's first answer
	Stopped []float64 // SIGSTOP of the leader → the same

	Asked []float64 // a graceful close is asked for → the same
	Gap   []float64 // the part of that after the old leader's last "I lead"

	Woken    int       // leaders that were woken after the next one had begun
	WokenLed int       // those of them that answered "I lead" once more
	Double   []float64 // for how long two led then, for each woken leader

	Terms    int // in all trials; one that goes on after a gap counts twice
	Overlaps int // pairs of terms in which two led at one instant, without a suspension

	Leading *member.Check

	Failures []string // trials that could not be carried out

	mu sync.Mutex
}

func (r *Results) take(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}
