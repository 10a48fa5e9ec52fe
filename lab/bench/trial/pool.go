package trial

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/pause"
)

// Options of a series.
type Options struct {
	Place   peers.Place
	Servers peers.Servers
	N       int // trials of each kind
	Few     int // of systems with a long lease
	Lanes   int // groups side by side at most; 0 to choose by the lease
	Log     func(string, ...any)
}

// groups counts all groups of this process, so that each name is used once.
var groups atomic.Int64

func groupName() string { return fmt.Sprintf("bench-%d-%d", time.Now().Unix(), groups.Add(1)) }

// lanes is the number of groups that wait side by side. With a long lease nearly all of the time is waiting.
func lanes(lease time.Duration) int {
	switch {
	case lease <= brief:
		return 2
	case lease <= time.Second:
		return 5
	case lease <= 2*time.Second:
		return 8
	default:
		return 10
	}
}

// fine is the sampling interval at hand-overs and sentinels' fail-overs, which happen in one group at a
// time. They take milliseconds, or less than one if the members are the servers.
func fine(system peers.System) time.Duration {
	if system.Inside {
		return 100 * time.Microsecond
	}
	return 500 * time.Microsecond
}

// sampling is the interval of all other trials: a two-hundredth of the lease, 1 to 25 ms. Sixty processes
// that sample every 10 ms would take most of two cores, since a thread of Go's runtime looks for work
// fifty times after each sample.
func sampling(lease time.Duration) time.Duration {
	return min(max(lease/200, time.Millisecond), 25*time.Millisecond)
}

// calmLanes is the number of groups side by side when hand-overs are measured. Most of the time these groups settle.
const calmLanes = 4

// Series runs all kinds of trials of a system, on several groups side by side. Then it calls last
// with one group, whose sampling has been stopped.
func Series(ctx context.Context, system peers.System, o Options, last func(context.Context, *Group) error) (*Results, error) {
	n := o.N
	if system.Few {
		n = min(n, o.Few)
	}
	width := lanes(system.Lease)
	if o.Lanes > 0 {
		width = min(width, o.Lanes)
	}
	s := &series{Options: o, system: system, results: &Results{}, every: sampling(system.Lease)}
	defer s.close()
	// Faults come first, since they mostly wait. Trials that take milliseconds come later, when
	// fewer lanes start processes.
	s.run(ctx, s.trials(n, peers.Kill, peers.Stop, peers.First), width)
	s.run(ctx, s.trials(n, peers.Hand, peers.Restart), min(calmLanes, width))
	if err := s.finish(ctx, last); err != nil && ctx.Err() == nil {
		s.fail("cost", err)
	}
	return s.results, ctx.Err()
}

// trials returns n trials of each kind that the system is put through.
func (s *series) trials(n int, kinds ...peers.Kind) []peers.Kind {
	var queue []peers.Kind
	for _, kind := range kinds {
		if slices.Contains(s.system.Kinds, kind) {
			queue = append(queue, slices.Repeat([]peers.Kind{kind}, n)...)
		}
	}
	return queue
}

type series struct {
	Options
	system  peers.System
	results *Results
	every   time.Duration
	calm    sync.Mutex

	mu   sync.Mutex
	free []*Group // groups that are whole and wait for the next trial
}

// run has lanes take trials from a queue. Groups that no lane needs are closed.
func (s *series) run(ctx context.Context, kinds []peers.Kind, lanes int) {
	for len(s.free) > lanes {
		s.drop(s.take())
	}
	queue := make(chan peers.Kind, len(kinds))
	for _, k := range kinds {
		queue <- k
	}
	close(queue)
	var all sync.WaitGroup
	for range min(lanes, len(kinds)) {
		all.Go(func() {
			for kind := range queue {
				if ctx.Err() != nil {
					return
				}
				if err := s.one(ctx, kind); err != nil && ctx.Err() == nil {
					s.fail(string(kind), err)
				}
			}
		})
	}
	all.Wait()
}

// one carries out a trial on a free group, or on a new one. After a failure or a First the group is closed.
func (s *series) one(ctx context.Context, kind peers.Kind) error {
	if kind == peers.First {
		g := s.group()
		defer s.drop(g)
		return g.Do(ctx, kind, s.results)
	}
	g, err := s.whole(ctx)
	if err == nil {
		err = g.Do(ctx, kind, s.results)
	}
	if err != nil {
		s.drop(g)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, g)
	return nil
}

// take returns a free group, or nil.
func (s *series) take() *Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 {
		return nil
	}
	g := s.free[0]
	s.free = s.free[1:]
	return g
}

// whole returns a group of three members. The caller drops the group, even after an error.
func (s *series) whole(ctx context.Context) (*Group, error) {
	g := s.take()
	if g != nil {
		return g, nil
	}
	g = s.group()
	return g, g.Ready(ctx, peers.Size)
}

func (s *series) group() *Group {
	return NewGroup(s.Place, s.system, s.Servers, groupName(), s.every, &s.calm)
}

// drop closes a group, and adds up its terms.
func (s *series) drop(g *Group) {
	terms, overlaps := g.overlaps()
	s.results.take(func() {
		s.results.Terms += terms
		s.results.Overlaps += overlaps
	})
	g.Close()
}

func (s *series) close() {
	for g := s.take(); g != nil; g = s.take() {
		s.drop(g)
	}
}

// finish measures costs, with one group left, on a quiet machine.
func (s *series) finish(ctx context.Context, last func(context.Context, *Group) error) error {
	g, err := s.whole(ctx)
	defer s.drop(g)
	s.close()
	if err == nil {
		err = g.Quieten(ctx)
	}
	if err == nil && !s.system.Sentinel { // with a sentinel a check costs the same
		err = s.check(ctx, g)
	}
	if err != nil || last == nil {
		return err
	}
	return last(ctx, g)
}

// Ready fills a group and waits until it has settled.
func (g *Group) Ready(ctx context.Context, size int) error {
	if err := g.Fill(ctx, size); err != nil {
		return err
	}
	if _, err := g.leader(ctx); err != nil {
		return err
	}
	return pause.For(ctx, g.system.Settle)
}

func (s *series) fail(what string, err error) {
	s.results.take(func() { s.results.Failures = append(s.results.Failures, fmt.Sprintf("%s: %v", what, err)) })
	s.Log("%s: %s: %v", s.system.Name(), what, err)
}

// overlaps counts terms, and pairs of terms that overlap. Pairs leave out runs that go on after a gap: wakes have
// figures of their own.
func (g *Group) overlaps() (terms, overlaps int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	tracks := g.tracks()
	for i, t := range tracks {
		terms += len(t.All())
		for _, other := range tracks[:i] {
			for _, a := range t.Fresh() {
				for _, b := range other.Fresh() {
					if a.Meets(b) {
						overlaps++
					}
				}
			}
		}
	}
	return terms, overlaps
}

// check measures what a check costs the leader.
func (s *series) check(ctx context.Context, g *Group) error {
	leader, err := g.leader(ctx)
	if err != nil {
		return err
	}
	l, err := leader.do(ctx, member.Command{Do: member.DoCheck})
	s.results.Leading = l.Check
	return err
}
