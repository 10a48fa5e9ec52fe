package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli/bench/measure"
	"github.com/goneli/neli/bench/member"
	"github.com/goneli/neli/bench/peers"
)

func errorsOf(errs ...error) error { return errors.Join(errs...) }

// Options of a series.
type Options struct {
	Place   peers.Place
	Servers peers.Servers
	N       int // trials of each kind
	Few     int // of systems with a long lease
	Lanes   int // groups side by side at most; 0 to choose by the lease
	Log     func(string, ...any)
}

// groups counts all groups of this process: names are used once.
var groups atomic.Int64

func groupName() string { return fmt.Sprintf("bench-%d-%d", time.Now().Unix(), groups.Add(1)) }

// lanes is how many groups wait side by side. With a long lease next to all of the
// time is waiting; with a short one nothing else shall be going on.
func lanes(lease time.Duration) int {
	switch {
	case lease <= 500*time.Millisecond:
		return 1
	case lease <= time.Second:
		return 3
	case lease <= 2*time.Second:
		return 5
	default:
		return 10
	}
}

// sampling is the interval between two questions. Thirty processes that ask a
// thousand times a second would be the larger part of the machine's load.
func sampling(lanes int) time.Duration {
	if lanes > 5 {
		return 2 * time.Millisecond
	}
	return time.Millisecond
}

// Series puts a system through all kinds of trials, on several groups side by side.
func Series(ctx context.Context, system peers.System, o Options) (*Results, error) {
	n := o.N
	if system.Few {
		n = min(n, o.Few)
	}
	width := lanes(system.Lease)
	if o.Lanes > 0 {
		width = min(width, o.Lanes)
	}
	s := &series{Options: o, system: system, results: &Results{}, every: sampling(width)}
	// Faults first, with much waiting; what takes milliseconds comes when no lane
	// starts processes for anything else.
	waiting := slices.Concat(slices.Repeat([]Kind{Kill}, n), slices.Repeat([]Kind{Stop}, n), slices.Repeat([]Kind{First}, n))
	busy := slices.Concat(slices.Repeat([]Kind{Hand}, n), slices.Repeat([]Kind{Join}, n))
	s.run(ctx, waiting, min(width, len(waiting)))
	s.run(ctx, busy, min(2, width, len(busy)))
	if err := s.checks(ctx); err != nil {
		s.fail("cost of the check", err)
	}
	return s.results, ctx.Err()
}

type series struct {
	Options
	system  peers.System
	results *Results
	every   time.Duration
	calm    sync.Mutex
}

// run has lanes take trials from a queue.
func (s *series) run(ctx context.Context, kinds []Kind, lanes int) {
	queue := make(chan Kind, len(kinds))
	for _, k := range kinds {
		queue <- k
	}
	close(queue)
	var all sync.WaitGroup
	for range lanes {
		all.Go(func() { s.lane(ctx, queue) })
	}
	all.Wait()
}

// lane has one group at a time. One that did not come through a trial is replaced.
func (s *series) lane(ctx context.Context, queue <-chan Kind) {
	var g *Group
	drop := func() {
		if g != nil {
			s.account(g)
			g.Close()
			g = nil
		}
	}
	defer drop()
	for kind := range queue {
		if ctx.Err() != nil {
			return
		}
		if kind == First {
			fresh := s.group()
			if err := fresh.Do(ctx, kind, s.results); err != nil {
				s.fail(string(kind), err)
			}
			fresh.Close()
			continue
		}
		var err error
		if g == nil {
			g = s.group()
			err = g.Ready(ctx, peers.Size)
		}
		if err == nil {
			err = g.Do(ctx, kind, s.results)
		}
		if err != nil {
			s.fail(string(kind), err)
			drop()
		}
	}
}

func (s *series) group() *Group {
	return NewGroup(s.Place, s.system, s.Servers, groupName(), s.every, &s.calm)
}

// Ready fills a group and waits until nothing stirs it any more.
func (g *Group) Ready(ctx context.Context, size int) error {
	if err := g.Fill(ctx, size); err != nil {
		return err
	}
	if err := g.Lead(ctx); err != nil {
		return err
	}
	return pause(ctx, g.system.Settle)
}

func (s *series) fail(what string, err error) {
	s.results.take(func() { s.results.Failures = append(s.results.Failures, fmt.Sprintf("%s: %v", what, err)) })
	s.Log("%s: %s: %v", s.system.Name(), what, err)
}

// account adds up the terms of a group that is about to end. Overlaps at a wake are
// told apart by their own figures: a span that began after a gap is not counted.
func (s *series) account(g *Group) {
	terms, overlaps := g.overlaps()
	s.results.take(func() {
		s.results.Terms += terms
		s.results.Overlaps += overlaps
	})
}

func (g *Group) overlaps() (terms, overlaps int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := member.Now()
	tracks := slices.Clone(g.past)
	for _, c := range g.present {
		tracks = append(tracks, &c.track)
	}
	for i, t := range tracks {
		terms += len(t.Spans)
		for _, other := range tracks[:i] {
			for _, a := range t.Spans {
				for _, b := range other.Spans {
					if a.Woken || b.Woken {
						continue
					}
					if _, met := measure.Overlap([]measure.Span{a}, []measure.Span{b}, now); met {
						overlaps++
					}
				}
			}
		}
	}
	return terms, overlaps
}

// checks measures what asking costs the leader and a follower, on a quiet machine.
func (s *series) checks(ctx context.Context) error {
	g := s.group()
	defer g.Close()
	if err := g.Ready(ctx, peers.Size); err != nil {
		return err
	}
	if err := g.Quieten(ctx, true); err != nil {
		return err
	}
	leader, err := g.leader(ctx)
	if err != nil {
		return err
	}
	check := func(c *candidate) (*member.Check, error) {
		l, err := c.do(ctx, member.Command{Do: member.DoCheck})
		return l.Check, err
	}
	if s.results.Leading, err = check(leader); err != nil {
		return err
	}
	i := slices.IndexFunc(g.present, func(c *candidate) bool { return c != leader })
	s.results.Following, err = check(g.present[i])
	return err
}
