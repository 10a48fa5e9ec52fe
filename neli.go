package neli

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Neli contends for leadership on behalf of this process, from New until Close.
// Its methods may be called concurrently, but for the restrictions that Barrier
// names.
type Neli struct {
	set     *settings
	barrier Barrier
	arb     arbiter
	h       threshold
	now     func() instant

	roles      atomic.Int64          // R
	lastPulse  atomic.Int64          // monotonic; when the application was last heard of
	drainingTo atomic.Int64          // monotonic; it is alive until then, in the barrier
	waiting    atomic.Int32          // drivers that wait for news: alive, however long
	led        atomic.Pointer[[]int] // partitions of which the application was told
	state      atomic.Int32

	driver chan struct{} // held by whoever may run the barrier and the task
	told   map[int]int64 // of the driver: partition → term that the application has

	mu        sync.Mutex // guards posture and stepping
	posture   posture
	stepping  int         // calls of StepDown that wait
	contends  atomic.Bool // posture.contend
	closing   chan struct{}
	closeOnce sync.Once

	stop context.CancelFunc
	done chan struct{} // closed when the arbiter has ended, with err
	err  error
}

// State is the stage of a Neli's life.
type State int

const (
	// StateLive: contending, or able to.
	StateLive State = iota
	// StateClosing: Close was called and has not finished.
	StateClosing
	// StateClosed: stopped by Close.
	StateClosed
	// StateFailed: stopped by an error that cannot be retried; Pulse returns it.
	StateFailed
)

func (s State) String() string { return nameOf(int(s), "live", "closing", "closed", "failed") }

// Stats counts what this process has read from the leader topic, and what kept it.
type Stats struct {
	Records   uint64 // all
	Foreign   uint64 // of other groups, skipped
	Newer     uint64 // of a newer version of this library, skipped
	Malformed uint64 // skipped
	Resets    uint64 // times that the log went back and a lease started anew

	// Throttled is how long, in all, brokers have made this process wait because a
	// quota was exceeded (client quotas of Kafka). It is up to a minute behind.
	Throttled time.Duration
}

// New starts a Neli. It does not wait for a broker: that is found, and the topic
// created if need be, in the background, and retried until it succeeds. The
// process contends from the first Pulse, Background or Lead on.
//
// barrier is optional; more than one is refused. The error lists everything that
// is wrong with cfg.
func New(cfg Config, barrier ...Barrier) (*Neli, error) {
	set, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	if len(barrier) > 1 {
		return nil, fmt.Errorf("neli: New: %d barriers given, at most one is possible", len(barrier))
	}
	n := newNeli(set, clock, barrier...)
	if n.arb, err = newArbiter(cfg.Provider, set, n.now, n.alive); err != nil {
		return nil, err
	}
	n.start()
	return n, nil
}

func newNeli(set *settings, now func() instant, barrier ...Barrier) *Neli {
	n := &Neli{
		set:     set,
		h:       threshold{t: set.timeout, exclusive: set.mode == Exclusive},
		now:     now,
		driver:  make(chan struct{}, 1),
		told:    map[int]int64{},
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	n.posture = posture{roles: set.roles, why: ReasonResigned, unhealthy: set.healthy != nil}
	if len(barrier) == 1 {
		n.barrier = barrier[0]
	}
	n.led.Store(new([]int))
	n.roles.Store(int64(set.roles))
	n.heard()
	return n
}

func (n *Neli) start() {
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.set.announce()
	n.arb.intend(n.posture)
	go func() {
		health := n.watchHealth()
		n.err = n.arb.run(ctx)
		health.stop()
		if n.err != nil && ctx.Err() == nil {
			n.state.Store(int32(StateFailed))
			n.set.logger.Error("leadership is not possible any more", "group", n.set.group, "error", n.err)
		} else {
			n.err = nil
		}
		close(n.done)
	}()
}

// IsLeader reports whether this process leads at least one role at this instant.
// It is a check of the clock and touches neither lock nor network.
//
// In exclusive mode at most one process gets true at any instant. What is begun
// after the check is not covered by it: use the fencing token where that
// matters.
func (n *Neli) IsLeader() bool {
	_, ok := n.leadsAny()
	return ok
}

// leadsAny also returns the reading of the clock by which it was decided.
func (n *Neli) leadsAny() (instant, bool) {
	cells, roles := n.arb.cells(), int(n.roles.Load())
	for _, p := range *n.led.Load() {
		if p < roles {
			if _, at, ok := cells[p].leads(n.h, n.now); ok {
				return at, true
			}
		}
	}
	return instant{}, false
}

// IsLeaderOf is IsLeader for one role.
func (n *Neli) IsLeaderOf(role int) bool {
	_, ok := n.term(role)
	return ok
}

// Token returns the fencing token of role, if this process leads it at this
// instant. Over successive leaders of a role tokens strictly increase. Hand the
// token to whatever the work changes, and let that refuse lower ones than it has
// seen. In non-exclusive mode there are no tokens: ok is false.
func (n *Neli) Token(role int) (token int64, ok bool) {
	t, ok := n.term(role)
	if !ok || t.token == noToken {
		return noToken, false
	}
	return n.set.outward(t.token), true
}

func (n *Neli) term(role int) (*term, bool) {
	cells := n.arb.cells()
	if role < 0 || role >= int(n.roles.Load()) || len(cells) == 0 {
		return nil, false
	}
	t, _, ok := cells[partitionOf(role, len(cells))].leads(n.h, n.now)
	return t, ok
}

// Roles yields the roles that this process leads, in ascending order; each is
// checked as it is yielded.
func (n *Neli) Roles() iter.Seq[int] {
	return func(yield func(int) bool) {
		led := *n.led.Load()
		if len(led) == 0 {
			return
		}
		for base, m := 0, len(n.arb.cells()); base < int(n.roles.Load()); base += m {
			for _, p := range led {
				if n.IsLeaderOf(base+p) && !yield(base+p) {
					return
				}
			}
		}
	}
}

// SetRoles changes R, the number of roles. Roles that are gone are given up (a
// partition that has none left is revoked); new roles on a partition that this
// process leads are led at once. Processes may learn of a new R at different
// times: each contends for the roles that it knows of.
func (n *Neli) SetRoles(r int) error {
	if r < 1 || r > maxRoles {
		return fmt.Errorf("neli: SetRoles: %d: must be between 1 and %d", r, maxRoles)
	}
	n.roles.Store(int64(r))
	n.adjust(func(p *posture) { p.roles = r })
	return nil
}

// State returns the stage of this Neli's life.
func (n *Neli) State() State { return State(n.state.Load()) }

// Stats returns what was counted so far.
func (n *Neli) Stats() Stats {
	s := n.arb.stats()
	s.Throttled = n.set.throttling.total()
	return s
}

// Name returns the name of this process, as configured or made up.
func (n *Neli) Name() string { return n.set.name }

// Await blocks until this Neli has stopped. It returns nil after Close, or the
// error that ended it for good.
func (n *Neli) Await() error {
	<-n.done
	return n.err
}

// adjust changes the posture and tells the arbiter.
func (n *Neli) adjust(change func(*posture)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.posture)
	n.contends.Store(n.posture.contend)
	n.arb.intend(n.posture)
}

// contend makes this process a candidate, if it is not one.
func (n *Neli) contend() {
	if !n.contends.Load() {
		n.adjust(func(p *posture) { p.contend = true })
	}
}

// resign gives up what is led, and contends no more until something drives this
// Neli again.
func (n *Neli) resign() {
	n.adjust(func(p *posture) { p.contend = false })
}

// heard takes note that the application is alive.
func (n *Neli) heard() { n.lastPulse.Store(int64(n.now().mono)) }

// alive is the gate for beats: a hung application must be replaced.
func (n *Neli) alive(now instant) bool {
	return n.waiting.Load() > 0 || int64(now.mono) < n.drainingTo.Load() || now.mono-time.Duration(n.lastPulse.Load()) < n.set.maxPulse
}

// ended returns the error for which this Neli cannot be driven any more, or nil.
func (n *Neli) ended() error {
	select {
	case <-n.done:
		if n.err != nil {
			return n.err
		}
		return ErrClosed
	default:
		return nil
	}
}

// deliver tells the application, on this goroutine, what has changed. The caller
// is the driver.
func (n *Neli) deliver() {
	for {
		changes := n.arb.collect()
		if len(changes) == 0 {
			return
		}
		n.tell(changes, func(c change) { n.arb.drained(c.partition, c.id) })
	}
}

// tell calls the barrier, once for each reason among the changes, and revoked for
// each partition that is to be given up as soon as the barrier knows.
func (n *Neli) tell(changes []change, revoked func(change)) {
	for _, c := range changes {
		switch c.kind {
		case changeAcquired:
			n.told[c.partition] = c.id
		case changeLost, changeGone:
			delete(n.told, c.partition)
		case changeRevoke:
		}
	}
	led := make([]int, 0, len(n.told))
	for p := range n.told {
		led = append(led, p)
	}
	slices.Sort(led)
	n.led.Store(&led)
	changes = slices.DeleteFunc(slices.Clone(changes), func(c change) bool { return c.kind == changeGone })
	for len(changes) > 0 {
		i := 1
		for i < len(changes) && changes[i].reason == changes[0].reason && changes[i].graceful == changes[0].graceful {
			i++
		}
		e := n.event(changes[:i])
		n.set.logger.Info(e.String(), "group", n.set.group, "name", n.set.name)
		n.call(e)
		for _, c := range changes[:i] {
			if c.kind == changeRevoke {
				revoked(c)
			}
		}
		changes = changes[i:]
	}
}

// call runs the barrier. A revocation has a deadline of its own: the application
// counts as alive until then, though it does not pulse meanwhile.
func (n *Neli) call(e Event) {
	if n.barrier == nil {
		return
	}
	if _, ok := e.(LeaderRevoked); ok {
		n.drainingTo.Store(int64(n.now().mono + n.set.drain))
		defer n.drainingTo.Store(0)
	}
	n.barrier(e)
}

func (n *Neli) event(cs []change) Event {
	m, r := len(n.arb.cells()), int(n.roles.Load())
	ch := Change{Reason: cs[0].reason, Terms: make([]Term, len(cs))}
	for i, c := range cs {
		ch.Terms[i] = Term{Partition: c.partition, Token: n.set.outward(c.token), Roles: slices.Collect(rolesOn(c.partition, m, r))}
	}
	switch cs[0].kind {
	case changeAcquired:
		return LeaderAcquired{ch}
	case changeRevoke:
		// Partitions that were asked for at different times share one event: all is
		// to be finished by the earliest deadline.
		first := slices.MinFunc(cs, func(a, b change) int { return a.deadline.Compare(b.deadline) })
		return LeaderRevoked{ch, first.deadline}
	case changeLost, changeGone:
		if cs[0].graceful {
			return LeaderRevoked{ch, time.Time{}}
		}
	}
	return LeaderFenced{ch}
}
