package neli

import (
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/term"
)

// Neli contends for leadership on behalf of this process, from New until Close. Its methods may be
// called concurrently, except as Barrier says. docs/guide.md#what-works-in-which-mode says what each
// mode lacks.
type Neli struct {
	// Fields that several goroutines share, in groups. A comment names the guard of each group.

	set     *settings
	barrier Barrier
	core    core
	now     func() clock.Instant // the ordinary clocks: a check must be cheap
	began   clock.Instant

	roles      atomic.Int64 // R
	lastPulse  atomic.Int64 // monotonic; the application's last sign of life
	barrierAt  atomic.Int64 // monotonic; since when the barrier has been at work; never64: it is not
	waiting    atomic.Int32 // drivers that wait for news; they are alive however long that takes
	reported   atomic.Int64 // lastPulse of the silence that was logged last
	inTask     atomic.Bool  // the driver is in the task of Background
	state      atomic.Int32
	turnOf     atomic.Pointer[string] // the call that last became the driver
	pulseWaits atomic.Bool            // it was logged that a Pulse waits for another call

	driver  chan struct{} // a lock: its owner, the driver, may run the barrier and the task
	told    int           // used by the driver: units that the application was told it leads
	pending []term.Change // used by the driver: collected changes that the barrier has yet to get
	owed    atomic.Bool   // pending is not empty

	mu        sync.Mutex // guards desired, stepping and most
	desired   elector.Desired
	stepping  int            // calls of StepDown that have not finished
	stepDowns sync.WaitGroup // calls of StepDown whose callers no longer wait; none is added once done is closed
	most      int            // the largest R since the application last led nothing
	contends  atomic.Bool    // desired.Contend
	closing   chan struct{}
	closeOnce sync.Once

	stop context.CancelFunc
	done chan struct{} // closed when the arbiter has ended; err is set then
	idle chan struct{} // closed when the goroutines that call the user's functions have ended, too
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
	// StateFailed: stopped by an error that cannot be retried; Pulse returns it. Close does not change this state.
	StateFailed
)

// New starts a Neli. It does not wait for a broker: it finds one and creates the topic in the
// background, and retries until that succeeds. The process contends from the first Pulse,
// Background or Lead on.
//
// barrier is optional; more than one is refused. The error lists everything that is wrong with
// cfg.
func New(cfg Config, barrier ...Barrier) (*Neli, error) {
	set, f := cfg.check(os.Getenv(sentinelVariable))
	if len(f.list) > 0 {
		set.endTokensSoon()
		f.properties(set)
		return nil, set.secrets.Err(f.err())
	}
	if len(barrier) > 1 {
		return nil, fmt.Errorf("neli: New: %d barriers given, at most one is possible", len(barrier))
	}
	n := newNeli(set, clock.Glance, barrier...)
	var err error
	if n.core, err = newCore(set, clock.System(), n); err != nil {
		set.endTokensSoon()
		f.properties(set)
		return nil, set.secrets.Err(or(f.err(), err))
	}
	n.start()
	return n, nil
}

func newNeli(set *settings, now func() clock.Instant, barrier ...Barrier) *Neli {
	n := &Neli{
		set:     set,
		now:     now,
		most:    set.Roles,
		driver:  make(chan struct{}, 1),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
		idle:    make(chan struct{}),
	}
	n.desired = elector.Desired{Roles: set.Roles, Weights: set.weights, Priority: set.Priority, Why: term.Resigned, Unhealthy: set.Healthy != nil && !set.Observer}
	if len(barrier) == 1 {
		n.barrier = barrier[0]
	}
	n.barrierAt.Store(never64)
	n.roles.Store(int64(set.Roles))
	n.began = now()
	n.heard()
	return n
}

func (n *Neli) start() {
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.set.announce()
	n.core.Set(n.desired)
	goodbye := n.set.watched.run()
	go func() {
		health, stopRequests, stopLeaders := n.watchHealth(), n.serveRequests(), n.sayLeaders()
		n.err = n.set.secrets.Err(own(n.core.Run(ctx)))
		if n.err != nil && ctx.Err() == nil {
			n.state.Store(int32(StateFailed))
			n.set.logger.Error("leadership is not possible any more", "error", n.err)
			n.set.lines.Flush(time.After(lastLines)) // the application may end the program because of the error
		} else {
			n.err = nil
		}
		n.mu.Lock() // after this, nothing is added to stepDowns
		close(n.done)
		n.mu.Unlock()
		n.stepDowns.Wait()
		health.stop() // after done is closed, because this waits for the user's code, which may hang
		stopRequests()
		stopLeaders()
		if n.core.elector != nil {
			n.core.elector.Wait() // for Config.Preference
		}
		n.set.endTokens(context.Background())
		goodbye() // last: the sentinel must watch until the roles are released
		close(n.idle)
	}()
}

// IsLeader reports whether this process leads at least one role at this instant. It is a check of
// the clock; it takes no lock and uses no network.
//
// In exclusive mode at most one process gets true for a role at any instant. An action that begins
// after the check is not covered by it: use the fencing token where that matters.
func (n *Neli) IsLeader() bool {
	_, ok := n.leadsAny()
	return ok
}

// leadsAny is IsLeader that also returns the clock reading on which the answer is based. The lowest
// role of a unit equals the unit's number, so R bounds units as it bounds roles.
func (n *Neli) leadsAny() (clock.Instant, bool) {
	return n.core.terms.LeadsAny(int(n.roles.Load()))
}

// IsLeaderOf is IsLeader for one role.
func (n *Neli) IsLeaderOf(role int) bool {
	_, _, ok := n.term(role)
	return ok
}

// Token returns the fencing token of role if this process leads it at this instant, in exclusive
// mode. A role's tokens strictly increase from term to term. Pass the token to every resource that
// the work changes, and let the resource refuse tokens lower than the highest it has seen.
func (n *Neli) Token(role int) (token int64, ok bool) {
	_, token, ok = n.term(role)
	if !ok || token == noToken {
		return noToken, false
	}
	return token, true
}

// term returns the term in which this process leads role at this instant. ok is false if it does not lead
// role, or if role is not below R.
func (n *Neli) term(role int) (id, token int64, ok bool) {
	if role < 0 || role >= int(n.roles.Load()) {
		return 0, 0, false
	}
	u := n.units()
	if u.partitions == 0 {
		return 0, 0, false
	}
	id, token, _, ok = n.core.terms.Leads(u.of(role))
	return id, token, ok
}

// Led yields the roles that this process leads, ascending. Each is checked when it is yielded.
func (n *Neli) Led() iter.Seq[int] {
	return func(yield func(int) bool) {
		u, roles := n.units(), int(n.roles.Load())
		led := n.core.terms.Published(roles)
		if u.perRole {
			for role := range led {
				if n.IsLeaderOf(role) && !yield(role) {
					return
				}
			}
			return
		}
		if u.partitions == 0 {
			return // the first term may have begun since units was called
		}
		partitions := slices.Collect(led)
		for base := 0; len(partitions) > 0 && base < roles; base += u.partitions {
			for _, p := range partitions {
				if n.IsLeaderOf(base+p) && !yield(base+p) {
					return
				}
			}
		}
	}
}

// SetRoles changes R, the number of roles. Roles at or beyond R are not led any more: IsLeaderOf
// is false for them, and LeaderRevoked asks the application to finish their work (ReasonRolesChanged).
// New roles are contended for like others. Processes may learn of a new R at different times; each
// contends for the roles that it knows.
//
// In non-exclusive mode, new roles on a partition that this process leads are led at once, without
// an event. A partition is revoked when no role is left on it.
//
// The error says that r is below 1 or above 1,000,000, or which Config.Weight is out of bounds; R stays as it is then.
// SetRoles does not wait, but it calls Config.Weight.
func (n *Neli) SetRoles(r int) error {
	if r < 1 || r > maxRoles {
		return fmt.Errorf("neli: SetRoles: %d: must be between 1 and %d", r, maxRoles)
	}
	weights, wrong, rule := n.set.weigh(r) // without a lock, since it is the user's code
	if rule != "" {
		return fmt.Errorf("neli: SetRoles: Config.Weight: %d %s", wrong, rule)
	}
	n.adjust(func(d *elector.Desired) {
		d.Roles, d.Weights = r, weights
		n.roles.Store(int64(r)) // under the lock, so that d.Roles and n.roles stay equal when two calls overlap
		n.most = max(n.most, r)
	})
	return nil
}

// SetPriority changes Config.Priority. Other members learn it with this process's next announcement, within
// a second in groups of up to 20. Roles then move as Config.Priority says: each at most once in 30 s, and
// only to members that have been there for 15 s. Where Config.Priority is ignored, so is SetPriority.
//
// The error says that p is below −1,000,000 or above 1,000,000; the priority stays as it is then.
// SetPriority does not wait.
func (n *Neli) SetPriority(p int) error {
	if p < -maxPriority || p > maxPriority {
		return fmt.Errorf("neli: SetPriority: %d: must be between %d and %d", p, -maxPriority, maxPriority)
	}
	n.adjust(func(d *elector.Desired) { d.Priority = p })
	return nil
}

// State returns the stage of life of this Neli.
func (n *Neli) State() State { return State(n.state.Load()) }

// Config returns the configuration that New was given, with defaults in place of zero values (except
// Logger), but without KafkaConfig and LoginToken: they may hold secrets. Roles and Priority are those at the start.
func (n *Neli) Config() Config {
	c := n.set.Config
	c.KafkaConfig, c.LoginToken = nil, nil
	return c
}

// Await blocks until this Neli has stopped. It returns nil after Close, or the error that ended this Neli.
func (n *Neli) Await() error {
	<-n.done
	return n.err
}

// adjust changes what this Neli wants, and tells the arbiter.
func (n *Neli) adjust(change func(*elector.Desired)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.desired)
	n.contends.Store(n.desired.Contend)
	n.core.Set(n.desired)
}

// contend makes this process a candidate.
func (n *Neli) contend() {
	if !n.contends.Load() {
		n.adjust(func(d *elector.Desired) { d.Contend = true })
	}
}

// resign gives up all roles, and contends no more until the next Pulse, Background or Lead.
func (n *Neli) resign() {
	n.adjust(func(d *elector.Desired) { d.Contend = false })
}

// heard records that the application is alive.
func (n *Neli) heard() { n.lastPulse.Store(int64(n.now().Mono)) }

// ended returns the error with which this Neli has ended, or nil if it has not.
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
