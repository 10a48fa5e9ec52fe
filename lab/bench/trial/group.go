package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/witness"
)

// Group is one election, and its candidates.
type Group struct {
	place   peers.Place
	system  peers.System
	members peers.Group
	name    string
	every   time.Duration
	calm    *sync.Mutex // held by whoever makes the machine busy, or needs it quiet

	mu          sync.Mutex
	changed     chan struct{} // closed at the next change
	present     []*candidate
	past        []measure.Track // of candidates that are gone
	incarnation int
	wrong       error
	sentinel    *peers.Sentinel // nil: there is none
}

// NewGroup returns a group without candidates, with a name that no earlier group had. All groups on
// the machine share calm.
func NewGroup(place peers.Place, system peers.System, servers peers.Servers, name string, every time.Duration, calm *sync.Mutex) *Group {
	return &Group{place: place, system: system, members: system.Members(servers, name), name: name, every: every,
		calm: calm, changed: make(chan struct{})}
}

// patience bounds every wait: a group that takes longer is broken.
func (g *Group) patience() time.Duration { return 2*g.system.Lease + time.Minute }

// note changes the group's state, and wakes all that wait for a change.
func (g *Group) note(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	close(g.changed)
	g.changed = make(chan struct{})
}

// await waits until done returns true. It calls done under the lock, after every change.
func (g *Group) await(ctx context.Context, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, g.patience())
	defer cancel()
	for {
		g.mu.Lock()
		ok, wrong, changed := done(), g.wrong, g.changed
		g.mu.Unlock()
		if ok || wrong != nil {
			return wrong
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s: waiting for %s: %w", g.system.Name(), what, context.Cause(ctx))
		}
	}
}

// awaitLeader waits for a candidate other than old that begins to lead after a time, and returns the first of them.
func (g *Group) awaitLeader(ctx context.Context, after time.Duration, old *candidate) (found *candidate, run witness.Run, err error) {
	err = g.await(ctx, "a leader", func() bool {
		for _, c := range g.present {
			if c == old || c.out {
				continue
			}
			for _, r := range c.track.Since(after) {
				if found == nil || r.First.After < run.First.After {
					found, run = c, r
				}
			}
		}
		return found != nil
	})
	return found, run, err
}

// leader waits until a candidate leads, and returns it.
func (g *Group) leader(ctx context.Context) (found *candidate, err error) {
	err = g.await(ctx, "a leader", func() bool {
		i := slices.IndexFunc(g.present, func(c *candidate) bool { return !c.out && c.track.Leads() })
		if i >= 0 {
			found = g.present[i]
		}
		return i >= 0
	})
	return found, err
}

// calmly runs a function that makes the machine busy, or needs it quiet. Only one runs at a time, over all groups.
func (g *Group) calmly(do func() error) error {
	g.calm.Lock()
	defer g.calm.Unlock()
	return do()
}

// start starts candidates and returns when each contends. Candidates that are servers listen by then.
func (g *Group) start(ctx context.Context, seats ...int) ([]*candidate, error) {
	var fresh []*candidate
	for _, seat := range seats {
		c, err := g.spawn(seat)
		if err != nil {
			return nil, err
		}
		fresh = append(fresh, c)
	}
	return fresh, g.await(ctx, "new members to contend", func() bool {
		return !slices.ContainsFunc(fresh, func(c *candidate) bool { return c.samples == 0 })
	})
}

// Fill starts candidates on the free seats below size, and waits until each is ready to take over.
func (g *Group) Fill(ctx context.Context, size int) error {
	var free []int
	for seat := range size {
		g.mu.Lock()
		taken := slices.ContainsFunc(g.present, func(c *candidate) bool { return c.seat == seat })
		g.mu.Unlock()
		if !taken {
			free = append(free, seat)
		}
	}
	var fresh []*candidate
	err := g.calmly(func() (err error) {
		fresh, err = g.start(ctx, free...)
		return err
	})
	if err != nil {
		return err
	}
	return g.await(ctx, "new members to be ready", func() bool {
		return !slices.ContainsFunc(fresh, func(c *candidate) bool { return !c.ready })
	})
}

// remove removes a candidate whose process has ended, but keeps its track.
func (g *Group) remove(c *candidate) {
	<-c.Done()
	g.note(func() {
		g.present = slices.DeleteFunc(g.present, func(other *candidate) bool { return other == c })
		g.past = append(g.past, c.track)
	})
}

// Close kills all processes.
func (g *Group) Close() {
	g.mu.Lock()
	present := slices.Clone(g.present)
	g.mu.Unlock()
	for _, c := range present {
		c.Kill()
		g.remove(c)
	}
	if g.sentinel != nil {
		g.sentinel.Kill()
	}
}

// Pids returns the process ids of the candidates.
func (g *Group) Pids() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	var pids []int
	for _, c := range g.present {
		pids = append(pids, c.Pid())
	}
	return pids
}

// Quieten stops the sampling, since it also costs CPU.
func (g *Group) Quieten(ctx context.Context) error { return g.sample(ctx, 0) }

// sample changes the interval between two samples.
func (g *Group) sample(ctx context.Context, every time.Duration) error {
	return g.each(ctx, member.Command{Do: member.DoSample, Every: every})
}

func (g *Group) each(ctx context.Context, command member.Command) error {
	g.mu.Lock()
	present := slices.Clone(g.present)
	g.mu.Unlock()
	var wrong []error
	for _, c := range present {
		_, err := c.do(ctx, command)
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// tracks returns the tracks of all candidates, present and past. The caller holds the lock.
func (g *Group) tracks() []measure.Track {
	tracks := slices.Clone(g.past)
	for _, c := range g.present {
		tracks = append(tracks, c.track)
	}
	return tracks
}
