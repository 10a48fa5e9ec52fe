package neli

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	iclock "github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
	"golang.org/x/sync/errgroup"
)

// vectorArbiter is non-exclusive mode, the paper's NELI: every process
// broadcasts to all partitions, and V[i] is when a record was last received on
// partition i, assigned to this process by the group. Whoever has received one
// within T presumes to lead.
type vectorArbiter struct {
	partitionTerms

	set      *settings
	topic    *topic
	producer Producer
	member   *groupMember
	alive    func(now instant) bool
	writing  accessGuard
	refused  chan error

	unwritten limiter
	unheard   limiter
	ended     atomic.Bool
	poke      chan struct{}

	mu       sync.Mutex // guards what follows, and the term table
	assigned []assignment
	posture  posture
	heard    []instant     // by partition: the newest record while it was assigned here, or when it was assigned
	away     time.Duration // monotonic time until which this process stays out of the group
	leaveAt  instant       // closing: when presumption ends
	terms    int64         // number of terms so far
	counts   Stats
}

// assignment is what the group last said of a partition.
type assignment int

const (
	assignedElsewhere assignment = iota // a completed assignment left it out
	assignedHere
	assignedUnknown // the session is over; nobody has told who has it
)

func newVectorArbiter(set *settings, t *topic, p Producer, member *groupMember, now func() instant, alive func(instant) bool) *vectorArbiter {
	a := &vectorArbiter{
		set:      set,
		topic:    t,
		producer: p,
		member:   member,
		alive:    alive,
		refused:  make(chan error, 1),
		poke:     make(chan struct{}, 1),
	}
	a.init(threshold{t: set.timeout}, now)
	member.onRecord, member.onUnknown = a.received, t.doubt
	return a
}

func (a *vectorArbiter) run(ctx context.Context) error {
	defer func() {
		a.ended.Store(true)
		a.member.close()
		a.topic.admin.Close()
		_ = a.producer.Close()
	}()
	m, err := a.topic.open(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.assigned = make([]assignment, m)
	a.heard = make([]instant, m)
	a.open(m)
	a.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range []func(context.Context) error{a.broadcast, a.expireWhenDue, a.topic.watch} {
		group.Go(func() error { return f(ctx) })
	}
	group.Go(func() error { return a.member.run(ctx, a.assign) })
	if err = group.Wait(); err == errFinished {
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
func (a *vectorArbiter) received(r Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now() // not before the record is in hand
	a.counts.Records++
	p := r.Partition
	if p < 0 || p >= len(a.assigned) || a.assigned[p] != assignedHere {
		return
	}
	a.heard[p] = now
	if !a.posture.wants(p) {
		return
	}
	id, _ := a.Held(p)
	if !a.current(p, now) || a.Over(p) {
		a.end(p, ReasonLapsed, false)
		a.terms++
		id = a.terms
		a.prod()
	}
	a.publish(p, id, noToken, now)
}

// assign takes the group's word. What was withdrawn is presumed until V lapses.
func (a *vectorArbiter) assign(partitions []int, lost bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	before := slices.Clone(a.assigned)
	if lost {
		a.forgo()
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
	a.prod()
}

// broadcast sends an empty record to every partition in every interval, so that
// none dries up whoever has it.
func (a *vectorArbiter) broadcast(ctx context.Context) error {
	tick := time.NewTicker(a.set.broadcast)
	defer tick.Stop()
	for {
		if a.attend() {
			for p := range a.assigned {
				_ = a.producer.Append(a.set.topic, p, nil, a.reported) // a later one will do
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
	if err == nil {
		a.writing.ok()
		return
	}
	if fatal := a.writing.check("WRITE topic "+a.set.topic, err); fatal != nil {
		select {
		case a.refused <- fatal:
		default:
		}
	}
	if !a.ended.Load() && a.unwritten.due() {
		a.set.logger.Warn("cannot write to the leader topic, retrying", "topic", a.set.topic, "error", err)
	}
}

// attend keeps this process in the group only while it could lead, and reports
// whether it takes part at all.
func (a *vectorArbiter) attend() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	alive := a.alive(now) && a.posture.contend
	if a.posture.unhealthy { // and long enough for the group to notice
		a.forgo()
		a.away = max(a.away, now.mono+a.set.deafPause)
	}
	if p, at := a.deaf(); p >= 0 && now.mono >= at {
		a.away = now.mono + a.set.deafPause
		a.forgo()
		if a.unheard.due() {
			a.set.logger.Warn("nothing is received on an assigned partition: leaving the group for a while to make room for others",
				"partition", p, "for", a.set.deafPause)
		}
	}
	a.member.join(alive && !a.posture.closing && !a.posture.unhealthy && now.mono >= a.away)
	return alive
}

// forgo forgets what the group has assigned. It is told when the group assigns anew;
// of a membership that is over already it would tell nothing.
func (a *vectorArbiter) forgo() {
	for p, has := range a.assigned {
		if has == assignedHere {
			a.assigned[p] = assignedUnknown
		}
	}
}

// deaf returns the partition that is the first to be given up for want of records,
// and when; −1 if none is. A process that is cut off from a partition's broker, and
// not from the group's coordinator, is healthy as far as the group knows: it would
// stay assigned, and nobody would lead once V has lapsed.
func (a *vectorArbiter) deaf() (partition int, at time.Duration) {
	partition = -1
	for p, has := range a.assigned {
		if t := a.heard[p].mono + a.set.deafAfter; has == assignedHere && a.posture.wants(p) && (partition < 0 || t < at) {
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
		case <-a.poke:
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
	next, held := now.mono+lookEvery, false
	if p, at := a.deaf(); p >= 0 && at > now.mono {
		next = min(next, at)
	}
	if a.away > now.mono {
		next = min(next, a.away)
	}
	for p := range a.assigned {
		if !a.held(p) {
			continue
		}
		switch {
		case !a.current(p, now):
			a.lapse(p, alive)
		case a.posture.closing && now.age(a.leaveAt) >= 0, !a.posture.closing && !a.posture.wants(p):
			a.end(p, a.posture.reason(p, now), true)
		default:
			held = true
			v, _ := a.V(p)
			next = min(next, instantOf(v).mono+a.set.timeout)
			if a.posture.closing {
				next = min(next, a.leaveAt.mono)
			}
		}
	}
	return max(next-now.mono, 100*time.Microsecond), a.posture.closing && !held
}

// lapse ends a term whose V has become older than T.
func (a *vectorArbiter) lapse(p int, alive bool) {
	why, graceful := ReasonLapsed, a.assigned[p] == assignedElsewhere
	switch {
	case a.posture.closing:
		why, graceful = ReasonClosing, true
	case graceful:
		why = ReasonUnassigned
	case !alive:
		why = ReasonNotPulsed
	case a.posture.unhealthy:
		why, graceful = ReasonUnhealthy, true
	}
	a.end(p, why, graceful)
}

func (a *vectorArbiter) prod() {
	select {
	case a.poke <- struct{}{}:
	default:
	}
}

func (a *vectorArbiter) intend(p posture) {
	a.mu.Lock()
	if p.closing && !a.posture.closing {
		a.leaveAt = a.now().add(a.set.overlap)
	}
	a.posture = p
	a.mu.Unlock()
	a.prod()
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

// endLapsed ends what has lapsed at this instant, which it returns: the table would
// call it a lapse, whatever the reason.
func (a *vectorArbiter) endLapsed() iclock.Instant {
	now := a.now()
	alive := a.alive(now)
	for p := range a.assigned {
		if a.held(p) && !a.current(p, now) {
			a.lapse(p, alive)
		}
	}
	return now.point()
}

// drained has nothing to do: terms end by themselves, and nobody waits.
func (a *vectorArbiter) drained([]int, int64) {}

func (a *vectorArbiter) stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts
}
