// Package nonexclusive is non-exclusive mode, the paper's NELI: at least one leader per role at
// all times, as long as the old leader lives.
//
// Every process broadcasts an empty record to all partitions. V[i] is when this process last
// received a record on partition i while its consumer group had assigned that partition to it. It
// leads the roles of partition i while V[i] is younger than T, also after the group has
// assigned the partition elsewhere: that is why leaders overlap rather than leave a gap.
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

// Arbiter decides which partitions this process leads. Run does the work; the other methods
// may be called concurrently. The units of its term table are partitions.
type Arbiter struct {
	set     *Settings
	clients Clients
	writing kafkalog.AccessGuard
	refused chan error

	unwritten kafkalog.Trouble
	unheard   kafkalog.Limiter
	ended     atomic.Bool
	wakeup    chan struct{}

	mu       sync.Mutex  // guards what follows
	table    *term.Table // what anybody may call needs no lock
	assigned []assignment
	desired  elector.Desired
	heard    []clock.Instant // by partition: the newest record while it was assigned here, or when it was assigned
	v        []clock.Instant // by partition, of any number: V, whether or not a role below R lives there
	away     clock.Mono      // until which this process stays out of the group
	leaveAt  clock.Instant   // while leaving: when the hand-over overlap ends
	terms    int64           // number of terms so far
	counts   Stats           // Records, Appended, AppendFailed and Read
}

// NoToken is the token of all terms: this mode has no fencing tokens.
const NoToken = int64(-1)

// lookEvery is how often the arbiter looks at itself when nothing else wakes it: it
// bounds how late a hung application is noticed.
const lookEvery = time.Second

// errFinished ends the work when a closing process holds nothing any more.
var errFinished = errors.New("finished")

// assignment is what the group last said of a partition.
type assignment int

const (
	assignedElsewhere assignment = iota // a completed assignment left it out
	assignedHere
	assignedUnknown // the session is over; nobody has told who has it
)

// New returns an Arbiter whose terms go into the given table. It does nothing before Run.
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

// Run works until ctx is done, until it is to close and holds nothing any more, or returns
// the error that ended it for good. When it returns, no goroutine of its is left.
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

// received moves V: evidence that this process, and nobody else in its group, is
// given the records of a partition.
func (a *Arbiter) received(r kafka.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.set.Now() // not before the record is in hand
	a.counts.Records++
	a.counts.Read = now
	p := r.Partition
	if p < 0 || p >= len(a.assigned) || a.assigned[p] != assignedHere {
		return
	}
	a.heard[p] = now
	if a.leaving() {
		return
	}
	a.v[p] = now
	if p < a.desired.Roles {
		a.lead(p, now)
	}
}

// lead publishes the V of partition p, in a new term if none goes on.
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

// leaving reports whether this process is out of the group for good, or until it is
// driven again, and leads on only until another member does.
func (a *Arbiter) leaving() bool { return a.desired.Closing || !a.desired.Contend }

// assign takes the group's word. This process goes on leading what was withdrawn until V lapses.
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
			}
		}
	}
	a.wake()
}

// dropAssignments forgets what the group has assigned, once that membership is over.
// Not before: a member that then stays after all is told nothing of what it has.
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

// intend takes what the Neli wants. Who closes, or is driven by nobody any more,
// leaves the group at once and leads on for the hand-over overlap; a Close that
// follows does not cut that short.
func (a *Arbiter) Set(want elector.Desired) {
	a.mu.Lock()
	now, left, roles := a.set.Now(), a.leaving(), a.desired.Roles
	a.desired = want
	switch {
	case a.leaving() && !left:
		a.leaveAt = now.Add(a.set.HandoverOverlap)
		for p := range a.assigned { // nobody counts on what the application has not been told
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
	a.table.Ring() // the driver looks at roles too
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

// drained has nothing to do: terms end by themselves, and nobody waits.
func (a *Arbiter) Drained([]int, int64) {}

// publish sets the term of p: a new one, or the same one with a newer V. A former
// term ends before that: the new V is no evidence for it.
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

// held reports whether there is a term of p, lapsed or not.
func (a *Arbiter) held(p int) bool {
	_, ok := a.table.Held(p)
	return ok
}

// current reports whether there is a term of p that has not lapsed.
func (a *Arbiter) current(p int, now clock.Instant) bool {
	v, ok := a.table.V(p)
	return ok && a.held(p) && a.young(now, v)
}
