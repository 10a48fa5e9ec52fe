package neli

import (
	"context"
	"sync/atomic"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// exclusive is the arbiter of exclusive mode: an elector over the logs of the leader
// topic. Its units are roles.
type exclusive struct {
	*elector.Elector
	terms *term.Table
	m     atomic.Int64 // M; 0 until it is known
}

func newExclusive(set *settings, log elector.Log, nom elector.Nominator, clocks clock.Clock, alive func(clock.Instant) bool) *exclusive {
	x := &exclusive{}
	young := func(now, v clock.Instant) bool { return lease.Young(now, v, set.timeout) }
	x.terms = term.New(young, set.frozen.Clock(clocks.Glance), func(role int) int { return partitionOf(role, int(x.m.Load())) })
	x.Elector = elector.NewElector(set.elector(alive), opened{log, &x.m, set}, nom, x.terms, clocks.Now, set.logger)
	return x
}

// opened takes note of M before anybody can ask for it.
type opened struct {
	elector.Log
	m   *atomic.Int64
	set *settings
}

func (o opened) Open(ctx context.Context) (int, string, error) {
	m, id, err := o.Log.Open(ctx)
	switch {
	case err != nil:
	case o.set.small: // all logs have all roles: that is one partition
		o.m.Store(1)
	default:
		o.m.Store(int64(m))
	}
	if err == nil && !o.set.small {
		o.set.opened(id)
	}
	return m, id, err
}

// Watch implements elector.Log. Small logs are opened before their topic is found.
func (o opened) Watch(ctx context.Context) error {
	if o.set.small {
		if id := kafkalog.Identity(ctx, o.Log); id != "" || o.set.logs == 0 {
			o.set.opened(id)
		}
	}
	return o.Log.Watch(ctx)
}

func (x *exclusive) run(ctx context.Context) error    { return x.Run(ctx) }
func (x *exclusive) intend(d elector.Desired)         { x.Set(d); x.terms.Ring() } // the driver looks at roles too
func (x *exclusive) units() units                     { return units{partitions: int(x.m.Load()), perRole: true} }
func (x *exclusive) table() *term.Table               { return x.terms }
func (x *exclusive) collect() []term.Change           { return x.Collect() }
func (x *exclusive) peek() []term.Change              { return x.Peek() }
func (x *exclusive) drained(units []int, token int64) { x.Drained(units, token) }

// elector is what the exclusive core is told.
func (s *settings) elector(alive func(clock.Instant) bool) *elector.Settings {
	set := &elector.Settings{
		Process:    s.instance,
		Name:       s.name,
		Group:      s.group,
		T:          s.timeout,
		Rho:        s.drift,
		Every:      s.every,
		Drain:      s.drain,
		AnswerWait: s.successorWait,
		RejoinWait: s.helloPause,
		Nominated:  s.nomination == Assigned,
		Observer:   s.observer,
		Majority:   s.small,
		TokenBase:  s.tokenBase,
		Priority:   s.priority,
		Rebalance:  s.rebalance,
		Requests:   s.requests != nil,
		Random:     s.random,
		Alive:      alive,
	}
	if s.preference != nil {
		set.Preference = func(m elector.Member, role int) int {
			return s.preference(Member{Name: m.Name, ID: m.Process, Priority: m.Priority}, role)
		}
	}
	return set
}
