// Package nonexclusive is the non-exclusive mode, which is the paper's NELI: each role has at
// least one leader at all times, as long as the old leader lives.
//
// Every process broadcasts an empty record to all partitions. V[i] is the time when this process
// last received a record on partition i while its consumer group had assigned that partition to
// it. It leads the roles of partition i while V[i] is younger than T, even after the group has
// assigned the partition elsewhere. That is why leaders overlap rather than leave a gap.
package nonexclusive

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/internal/term"
	"github.com/goneli/neli/kafka"
)

// Arbiter decides which partitions this process leads. Run does the work. The other methods may
// be called concurrently. The units of its term table are partitions.
type Arbiter struct {
	set     *Settings
	clients Clients
	writing kafkalog.AccessGuard
	refused chan error

	unwritten kafkalog.Trouble
	unheard   kafkalog.Limiter
	ended     atomic.Bool
	wakeup    chan struct{}

	mu       sync.Mutex  // guards the fields below
	table    *term.Table // some of its methods need no lock
	assigned []assignment
	desired  elector.Desired
	heard    []clock.Instant // by partition: when the newest record was received while it was assigned here, or when it was assigned
	v        []clock.Instant // by partition, even if no role below R lives there: V
	silence  []silence       // by partition: why no records arrive
	stalled  int             // the partition that made it leave; it returns once it can write there. Or none
	away     clock.Mono      // until when this process stays out of the group
	leaveAt  clock.Instant   // while leaving: when the hand-over overlap ends
	terms    int64           // number of terms so far
	counts   Stats           // Records, Appended, AppendFailed and Read
}

// NoToken is the token of all terms: this mode has no fencing tokens.
const NoToken = int64(-1)

// none is no partition.
const none = -1

// lookEvery is how often the arbiter checks its state when nothing else wakes it. It bounds how
// late a hung application is noticed.
const lookEvery = time.Second

// errFinished ends the work once a closing process holds nothing any more.
var errFinished = errors.New("finished")

// assignment is what the group last said about a partition.
type assignment int

const (
	assignedElsewhere assignment = iota // a completed assignment left it out
	assignedHere
	assignedUnknown // the session is over, and the group has not said who has the partition
)

// New returns an Arbiter that keeps its terms in the given table. It does nothing before Run.
func New(set *Settings, clients Clients, table *term.Table) *Arbiter {
	a := &Arbiter{
		set:     set,
		clients: clients,
		table:   table,
		refused: make(chan error, 1),
		wakeup:  make(chan struct{}, 1),
		writing: kafkalog.AccessGuard{SignedIn: &clients.Topic.Access},
	}
	clients.Member.OnRecord, clients.Member.OnUnknown = a.received, clients.Topic.Doubt
	return a
}

func (a *Arbiter) young(now, v clock.Instant) bool { return Young(now, v, a.set.T) }

// Run works until ctx is done, until the process is to close and holds nothing any more, or until
// an error ends it for good, which it returns. When it returns, none of its goroutines is left.
func (a *Arbiter) Run(ctx context.Context) error {
	defer func() {
		a.ended.Store(true)
		a.clients.Member.Close()
		a.clients.Topic.Admin.Close()
		_ = a.clients.Producer.Close()
	}()
	if err := a.clients.Topic.Open(ctx); err != nil {
		return err
	}
	m := a.clients.Topic.Size
	a.mu.Lock()
	a.assigned = make([]assignment, m)
	a.heard = make([]clock.Instant, m)
	a.v = make([]clock.Instant, m)
	a.silence, a.stalled = make([]silence, m), none
	a.table.Open(m, m)
	a.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range []func(context.Context) error{a.broadcast, a.expireWhenDue, a.clients.Topic.Watch} {
		group.Go(func() error { return f(ctx) })
	}
	group.Go(func() error { return a.clients.Member.Run(ctx, a.assign) })
	err := group.Wait()
	if errors.Is(err, errFinished) {
		err = nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	why := term.Fatal
	if err == nil {
		why = term.Closing
	}
	for p := range a.assigned {
		a.end(p, why, err == nil)
	}
	return err
}

// received moves V of an assigned partition, unless this process is leaving: the group gives the
// partition's records to no other member.
func (a *Arbiter) received(r kafka.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.set.Now() // read after the record was received
	a.counts.Records++
	a.counts.Read = now
	p := r.Partition
	if p < 0 || p >= len(a.assigned) || a.assigned[p] != assignedHere {
		return
	}
	a.heard[p] = now
	a.silence[p].read(now)
	if a.leaving() {
		return
	}
	a.v[p] = now
	if p < a.desired.Roles {
		a.lead(p, now)
	}
}

// lead publishes the V of partition p. It begins a new term if none goes on.
func (a *Arbiter) lead(p int, now clock.Instant) {
	id, _ := a.table.Held(p)
	if !a.current(p, now) || a.table.Over(p) {
		a.end(p, term.Lapsed, false)
		a.terms++
		id = a.terms
		a.wake()
	}
	a.publish(p, id, a.v[p])
}

// leaving reports whether this process is out of the group, for good or until it is driven again,
// and leads on for the hand-over overlap at most.
func (a *Arbiter) leaving() bool { return a.desired.Closing || !a.desired.Contend }

// assign takes over the group's assignment. This process goes on leading a partition that was
// withdrawn until V lapses.
func (a *Arbiter) assign(partitions []int, lost bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.set.Now()
	before := slices.Clone(a.assigned)
	if lost {
		a.dropAssignments()
	} else {
		clear(a.assigned) // elsewhere
	}
	for _, p := range partitions {
		if p >= 0 && p < len(a.assigned) {
			a.assigned[p] = assignedHere
			if before[p] != assignedHere {
				a.heard[p] = now
				a.silence[p].assigned(now)
			}
		}
	}
	a.wake()
}

// dropAssignments forgets the group's assignment, once this membership is over. If it did so
// earlier and the process stayed in the group after all, the group would not repeat the
// assignment.
func (a *Arbiter) dropAssignments() {
	for p, has := range a.assigned {
		if has == assignedHere {
			a.assigned[p] = assignedUnknown
		}
	}
}

func (a *Arbiter) wake() {
	select {
	case a.wakeup <- struct{}{}:
	default:
	}
}

// Set takes over what the Neli wants. A process that closes, or that nothing drives any more,
// leaves the group at once and leads on for the hand-over overlap. A later Close does not cut the
// overlap short.
func (a *Arbiter) Set(want elector.Desired) {
	a.mu.Lock()
	now, left, roles := a.set.Now(), a.leaving(), a.desired.Roles
	a.desired = want
	switch {
	case a.leaving() && !left:
		a.leaveAt = now.Add(a.set.HandoverOverlap)
		for p := range a.assigned { // nobody depends on a term of which the application was not told
			a.v[p] = clock.Instant{}
			if !a.table.Told(p) {
				a.end(p, a.desired.Reason(p, now), true)
			}
		}
	case !a.leaving() && !want.Unhealthy:
		for p := roles; p < min(a.desired.Roles, len(a.assigned)); p++ {
			if !a.held(p) && a.young(now, a.v[p]) {
				a.lead(p, now)
			}
		}
	}
	a.mu.Unlock()
	a.wake()
	a.table.Ring() // the driver has to look at the roles, too
}

func (a *Arbiter) Collect() []term.Change {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.table.Collect(a.endLapsed())
}

func (a *Arbiter) Peek() []term.Change {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.table.Peek(a.endLapsed())
}

// Drained has nothing to do: terms end by themselves, and no process waits for them.
func (a *Arbiter) Drained([]int, int64) {}

// publish sets the term of p: a new term, or the same one with a newer V. It ends a former term
// first, since the new V is no evidence for that one.
func (a *Arbiter) publish(p int, id int64, v clock.Instant) {
	held, ok := a.table.Held(p)
	if ok && held != id {
		a.end(p, term.Lapsed, false)
	}
	if old, had := a.table.V(p); !had || old != v {
		a.table.Renew(p, v)
	}
	if !ok || held != id {
		a.table.Start([]int{p}, id, NoToken)
	}
}

func (a *Arbiter) end(p int, why term.Reason, graceful bool) {
	a.table.End([]int{p}, why, graceful)
}

// held reports whether there is a term of p, even if it has lapsed.
func (a *Arbiter) held(p int) bool {
	_, ok := a.table.Held(p)
	return ok
}

// current reports whether there is a term of p that has not lapsed.
func (a *Arbiter) current(p int, now clock.Instant) bool {
	v, ok := a.table.V(p)
	return ok && a.held(p) && a.young(now, v)
}
