package neli

import (
	"context"
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

// vectorArbiter is non-exclusive mode, the paper's NELI: every process
// broadcasts to all partitions, and V[i] is when a record was last received on
// partition i, assigned to this process by the group. Whoever has received one
// within T leads. Its fields are what it was made with, what its goroutines tell each
// other, and what its mutex guards.
type vectorArbiter struct {
	partitionTerms

	set      *settings
	topic    *kafkalog.Topic
	producer kafka.Producer
	member   *kafkalog.GroupMember
	alive    func(now clock.Instant) bool
	writing  kafkalog.AccessGuard
	refused  chan error

	unwritten kafkalog.Trouble
	unheard   kafkalog.Limiter
	ended     atomic.Bool
	wakeup    chan struct{}

	mu       sync.Mutex // guards what follows, and the term table
	assigned []assignment
	desired  elector.Desired
	heard    []clock.Instant // by partition: the newest record while it was assigned here, or when it was assigned
	v        []clock.Instant // by partition, of any number: V, whether or not a role below R lives there
	away     clock.Mono      // until which this process stays out of the group
	leaveAt  clock.Instant   // while leaving: when the hand-over overlap ends
	terms    int64           // number of terms so far
	read     clock.Instant   // when a record was last read
	counts   Stats           // Records, Appended and AppendFailed
}

// lookEvery is how often the arbiter looks at itself when nothing else wakes it: it
// bounds how late a hung application is noticed.
const lookEvery = time.Second

// assignment is what the group last said of a partition.
type assignment int

const (
	assignedElsewhere assignment = iota // a completed assignment left it out
	assignedHere
	assignedUnknown // the session is over; nobody has told who has it
)

func newVectorArbiter(set *settings, t *kafkalog.Topic, p kafka.Producer, member *kafkalog.GroupMember, now func() clock.Instant, alive func(clock.Instant) bool) *vectorArbiter {
	a := &vectorArbiter{
		set:      set,
		topic:    t,
		producer: p,
		member:   member,
		alive:    alive,
		refused:  make(chan error, 1),
		wakeup:   make(chan struct{}, 1),
		writing:  kafkalog.AccessGuard{SignedIn: &t.Access},
	}
	a.init(threshold{t: set.timeout}, now, set.frozen.Clock(now))
	member.OnRecord, member.OnUnknown = a.received, t.Doubt
	return a
}

func (a *vectorArbiter) run(ctx context.Context) error {
	defer func() {
		a.ended.Store(true)
		a.member.Close()
		a.topic.Admin.Close()
		_ = a.producer.Close()
	}()
	if err := a.topic.Open(ctx); err != nil {
		return err
	}
	m := a.topic.Size
	a.mu.Lock()
	a.assigned = make([]assignment, m)
	a.heard = make([]clock.Instant, m)
	a.v = make([]clock.Instant, m)
	a.open(m)
	a.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range []func(context.Context) error{a.broadcast, a.expireWhenDue, a.topic.Watch} {
		group.Go(func() error { return f(ctx) })
	}
	group.Go(func() error { return a.member.Run(ctx, a.assign) })
	err := group.Wait()
	if err == errFinished {
		err = nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	why := ReasonFatal
	if err == nil {
		why = ReasonClosing
	}
	for p := range a.assigned {
		a.end(p, why, err == nil)
	}
	return err
}

// received moves V: evidence that this process, and nobody else in its group, is
// given the records of a partition.
func (a *vectorArbiter) received(r kafka.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now() // not before the record is in hand
	a.counts.Records++
	a.read = now
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
func (a *vectorArbiter) lead(p int, now clock.Instant) {
	id, _ := a.Held(p)
	if !a.current(p, now) || a.Over(p) {
		a.end(p, ReasonLapsed, false)
		a.terms++
		id = a.terms
		a.wake()
	}
	a.publish(p, id, noToken, a.v[p])
}

// leaving reports whether this process is out of the group for good, or until it is
// driven again, and leads on only until another member does.
func (a *vectorArbiter) leaving() bool { return a.desired.Closing || !a.desired.Contend }

// assign takes the group's word. This process goes on leading what was withdrawn until V lapses.
func (a *vectorArbiter) assign(partitions []int, lost bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
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

// broadcast sends an empty record to every partition in every interval, so that
// none dries up whoever has it.
func (a *vectorArbiter) broadcast(ctx context.Context) error {
	tick := time.NewTicker(a.set.broadcast)
	defer tick.Stop()
	for {
		if a.attend() {
			for p := range a.assigned {
				if err := a.producer.Append(a.set.topic, p, nil, a.reported); err != nil {
					a.count(err) // a later one will do
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-a.refused:
			return err
		case <-tick.C:
		}
	}
}

func (a *vectorArbiter) reported(err error) {
	a.count(err)
	if err == nil {
		a.writing.OK()
		a.unwritten.Over(a.set.logger, "writing to the leader topic again", "topic", a.set.topic)
		return
	}
	right := "WRITE topic " + a.set.topic
	if fatal := a.writing.Check(right, err); fatal != nil {
		select {
		case a.refused <- fatal:
		default:
		}
	}
	if !a.ended.Load() && a.unwritten.Due() {
		a.set.logger.Warn("cannot write to the leader topic, retrying", "topic", a.set.topic, "error", kafkalog.Naming(right, err))
	}
}

// attend keeps this process in the group only while it could lead, and reports
// whether it broadcasts.
func (a *vectorArbiter) attend() bool {
	broadcasts, starved := a.decide()
	if starved >= 0 && a.unheard.Due() { // no lock is held: a log handler may call back
		a.set.logger.Warn("no records received on an assigned partition: leaving the group for a while so that another member leads",
			"partition", starved, "for", a.set.starvedPause)
	}
	return broadcasts
}

// decide says whether this process broadcasts, and of which partition it has just
// noticed that no records are received; −1 if of none.
func (a *vectorArbiter) decide() (broadcasts bool, starved int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	alive, starved := a.alive(now), -1
	if a.desired.Unhealthy { // and long enough for the group to notice
		a.away = max(a.away, now.Mono.Add(a.set.starvedPause))
	}
	if p, at := a.starved(); p >= 0 && now.Mono >= at {
		a.away = now.Mono.Add(a.set.starvedPause) // from when it has left
		starved = p
	}
	a.member.Join(alive && !a.leaving() && !a.desired.Unhealthy && now.Mono >= a.away)
	return alive && (a.desired.Contend || now.Mono.Sub(a.leaveAt.Mono) < 0), starved
}

// dropAssignments forgets what the group has assigned, once that membership is over.
// Not before: a member that then stays after all is told nothing of what it has.
func (a *vectorArbiter) dropAssignments() {
	for p, has := range a.assigned {
		if has == assignedHere {
			a.assigned[p] = assignedUnknown
		}
	}
}

func (a *vectorArbiter) wake() {
	select {
	case a.wakeup <- struct{}{}:
	default:
	}
}

// intend takes what the Neli wants. Who closes, or is driven by nobody any more,
// leaves the group at once and leads on for the hand-over overlap; a Close that
// follows does not cut that short.
func (a *vectorArbiter) intend(want elector.Desired) {
	a.mu.Lock()
	now, left, roles := a.now(), a.leaving(), a.desired.Roles
	a.desired = want
	switch {
	case a.leaving() && !left:
		a.leaveAt = now.Add(a.set.handoverOverlap)
		for p := range a.assigned { // nobody counts on what the application has not been told
			a.v[p] = clock.Instant{}
			if !a.Told(p) {
				a.end(p, Reason(a.desired.Reason(p, now)), true)
			}
		}
	case !a.leaving() && !want.Unhealthy:
		for p := roles; p < min(a.desired.Roles, len(a.assigned)); p++ {
			if !a.held(p) && a.h.young(now, a.v[p]) {
				a.lead(p, now)
			}
		}
	}
	a.mu.Unlock()
	a.wake()
	a.Ring() // the driver looks at roles too
}

func (a *vectorArbiter) collect() []term.Change {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Collect(a.endLapsed())
}

func (a *vectorArbiter) peek() []term.Change {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Peek(a.endLapsed())
}

// drained has nothing to do: terms end by themselves, and nobody waits.
func (a *vectorArbiter) drained([]int, int64) {}

// starved returns the partition that is the first to be given up for want of records,
// and when; −1 if none is. A process that is cut off from a partition's broker, and
// not from the group's coordinator, is healthy as far as the group knows: it would
// stay assigned, and nobody would lead once V has lapsed.
func (a *vectorArbiter) starved() (partition int, at clock.Mono) {
	partition = -1
	for p, has := range a.assigned {
		if t := a.heard[p].Mono.Add(a.set.starvedAfter); has == assignedHere && !a.leaving() && (partition < 0 || t < at) {
			partition, at = p, t
		}
	}
	return partition, at
}

// expireWhenDue ends terms as soon as they have lapsed.
func (a *vectorArbiter) expireWhenDue(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-a.wakeup:
		}
		a.attend()
		d, finished := a.expire()
		if finished {
			return errFinished
		}
		timer.Reset(d)
	}
}

// expire ends terms that are over. It returns how long nothing will be due, and
// whether a closing process holds nothing any more.
func (a *vectorArbiter) expire() (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	alive := a.alive(now)
	next, held := now.Mono.Add(lookEvery), false
	if p, at := a.starved(); p >= 0 && at > now.Mono {
		next = min(next, at)
	}
	if a.away > now.Mono {
		next = min(next, a.away)
	}
	for p := range a.assigned {
		if !a.held(p) {
			continue
		}
		switch {
		case !a.current(p, now):
			a.lapse(p, alive)
		case a.leaving() && now.Mono.Sub(a.leaveAt.Mono) >= 0, p >= a.desired.Roles:
			a.end(p, Reason(a.desired.Reason(p, now)), true)
		default:
			held = true
			v, _ := a.V(p)
			next = min(next, v.Mono.Add(a.set.timeout))
			if a.leaving() {
				next = min(next, a.leaveAt.Mono)
			}
		}
	}
	return max(next.Sub(now.Mono), 100*time.Microsecond), a.desired.Closing && !held
}

// lapse ends a term whose V has become older than T.
func (a *vectorArbiter) lapse(p int, alive bool) {
	why, graceful := ReasonLapsed, a.assigned[p] == assignedElsewhere
	switch {
	case a.leaving():
		why, graceful = Reason(a.desired.Reason(p, a.now())), true
	case graceful:
		why = ReasonUnassigned
	case !alive:
		why = ReasonNotPulsed
	case a.desired.Unhealthy:
		why, graceful = ReasonUnhealthy, true
	}
	a.end(p, why, graceful)
}

// endLapsed ends what has lapsed at this instant, which it returns: the table would
// call it a lapse, whatever the reason.
func (a *vectorArbiter) endLapsed() clock.Instant {
	now := a.now()
	alive := a.alive(now)
	for p := range a.assigned {
		if a.held(p) && !a.current(p, now) {
			a.lapse(p, alive)
		}
	}
	return now
}
