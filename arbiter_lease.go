package neli

import (
	"context"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	"github.com/goneli/neli/internal/term"
	"golang.org/x/sync/errgroup"
)

// pollSlice is how long a reader or group consumer waits for something to come:
// it bounds how long a command waits for the goroutine that polls.
const pollSlice = 100 * time.Millisecond

// lookEvery is how often an arbiter looks at itself when nothing else wakes it:
// it bounds how late a hung application is noticed.
const lookEvery = time.Second

// leaseArbiter is exclusive mode: one lease for each partition of an ordered
// log. It reads the log, lets each lease decide, and appends what they decided.
type leaseArbiter struct {
	partitionTerms

	set   *settings
	log   orderedLog
	nom   nominator // nil: any process may claim
	alive func(now instant) bool
	poke  chan struct{} // wakes the stepper

	mu        sync.Mutex // guards what follows, and the term table
	leases    []lease
	hands     []*handover // orderly ends under way
	delays    []time.Duration
	landed    []time.Duration // monotonic time at which the claim under way was acknowledged; 0: it was not
	nominated []bool
	since     []instant // when this process was last newly nominated
	retained  []bool    // held when the group's session was lost: nominated no more, and not given up
	posture   posture
	peers     peers
	reach     reach
	choice    choice
	tempo     tempo
	home      int           // the partition in whose log this process says Hello
	scheduled time.Duration // when the stepper will wake by itself
	farewells int           // Releases and last Hellos on their way, not reported yet
	seats     seats
	counts    Stats
	odd       skipped
	alarms    limiter
	unreached limiter
	notes     notes
}

func newLeaseArbiter(set *settings, log orderedLog, nom nominator, now func() instant, alive func(instant) bool) *leaseArbiter {
	a := &leaseArbiter{
		set:   set,
		log:   log,
		nom:   nom,
		alive: alive,
		notes: notes{log: set.logger},
		poke:  make(chan struct{}, 1),
		tempo: tempo{rtt: maxRoundTrip, longest: max(time.Second, set.timeout/20)},
	}
	a.init(threshold{t: set.timeout, exclusive: true}, now)
	return a
}

func (a *leaseArbiter) run(ctx context.Context) error {
	defer a.log.close()
	if a.nom != nil {
		defer a.nom.close()
	}
	m, err := a.log.open(ctx)
	if err != nil {
		return err
	}
	a.setUp(m)
	work := []func(context.Context) error{a.read, a.stepWhenDue, a.log.watch}
	if a.nom != nil {
		work = append(work, func(ctx context.Context) error { return a.nom.run(ctx, a.nominate) })
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range work {
		group.Go(func() error { return f(ctx) })
	}
	if err = group.Wait(); err == errFinished {
		err = nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	why := ReasonFatal
	if err == nil {
		why = ReasonClosing
	}
	for p := range a.leases {
		a.leases[p].mine = noToken
		a.end(p, why, false)
	}
	return err
}

func (a *leaseArbiter) setUp(m int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	h := fnv.New32a()
	_, _ = h.Write([]byte(a.set.instance))
	a.home = int(h.Sum32() % uint32(m))
	a.leases = make([]lease, m)
	a.hands = make([]*handover, m)
	a.delays = make([]time.Duration, m)
	a.landed = make([]time.Duration, m)
	a.nominated = make([]bool, m)
	a.since = make([]instant, m)
	a.retained = make([]bool, m)
	a.peers = newPeers(m)
	a.choice = newChoice(m, a.set.timeout)
	a.seats.open(m)
	a.reach = newReach(m, a.set.silence())
	for p := range a.leases {
		a.leases[p].leaseRules = a.set.leaseRules()
		a.leases[p].start(0, now) // until the log says where it begins
		a.delays[p] = unranked
		a.nominated[p] = a.nom == nil && !a.set.observer
	}
	a.tempo.own = now
	a.open(m)
}

// read folds what the log has until ctx is done or the log ends.
func (a *leaseArbiter) read(ctx context.Context) error {
	for ctx.Err() == nil {
		e, ok, err := a.log.next(ctx, pollSlice)
		if err != nil {
			return err
		}
		if ok {
			a.take(e)
		}
	}
	return nil
}

func (a *leaseArbiter) take(e logEntry) {
	var r record
	var bad error
	if !e.jump {
		r, bad = decode(e.value, a.set.group)
	}
	debug := a.set.logger.Enabled(context.Background(), slog.LevelDebug)
	a.mu.Lock()
	now := a.now() // not before the record is in hand
	l := &a.leases[e.partition]
	quiet := l.quiet
	why, called := ReasonSuperseded, false
	switch {
	case e.jump:
		l.start(e.offset, now)
		l.live = e.end
		why = ReasonLogReset
	case bad != nil:
		a.counts.Records++
		a.odd.count(&a.counts, &a.notes, bad, e)
		if l.skip(e.offset, now).alarm {
			why = a.alarmed(e)
		}
	default:
		a.counts.Records++
		if r.kind == kindHello {
			called = a.hearHello(e, r, now)
		}
		if a.fold(e, r, now) {
			why = a.alarmed(e)
		}
	}
	if l.quiet != quiet {
		a.delays[e.partition] = unranked
	}
	a.inherit(e, r)
	if !e.jump {
		a.reach.read(e.partition)
	}
	a.note(debug, e, r, bad)
	a.sync(e.partition, why)
	a.seats.note(e.partition, l.standing(now))
	out := a.step(e.partition, now, nil)
	if r.kind == kindHello && !r.aside() {
		out = a.stepHandovers(r.member, now, out)
	}
	if called {
		answer := a.hi(e.partition, a.wants(now), now)
		answer.record.read = e.offset
		out = append(out, answer)
	}
	a.rouse(e.partition, now)
	a.unlock()
	a.send(out)
}

// fold gives a record to the lease of its partition, and reports an alarm.
func (a *leaseArbiter) fold(e logEntry, r record, now instant) bool {
	l := &a.leases[e.partition]
	sent := l.stampOf(r.seq, now) // consume may drop it
	c := l.consume(r, e.offset, now)
	if c.own && r.kind != kindRelease {
		a.tempo.back(sent, now)
	}
	if c.own && r.kind == kindClaim {
		a.seats.wake() // as StepDown may
		if a.posture.closing || a.choice.pace.full() {
			a.prod() // perhaps the last thing that Close, or another claim, waits for
		}
	}
	return c.alarm
}

// unlock releases the lock and then writes the log lines collected under it.
func (a *leaseArbiter) unlock() {
	write := a.notes.take()
	a.mu.Unlock()
	write()
}

func (a *leaseArbiter) alarmed(e logEntry) Reason {
	a.counts.Resets++
	if a.alarms.due() {
		a.notes.add(slog.LevelWarn, "the log went back or a record speaks of what lies ahead: starting anew",
			"partition", e.partition, "offset", e.offset, "resets", a.counts.Resets)
	}
	a.log.doubt()
	return ReasonLogReset
}

func (a *leaseArbiter) note(debug bool, e logEntry, r record, bad error) {
	if debug && bad == nil && !e.jump {
		l := &a.leases[e.partition]
		a.notes.add(slog.LevelDebug, "read", "partition", e.partition, "offset", e.offset, "kind", r.kind, "from", r.name,
			"token", r.token, "read", r.read, "seq", r.seq, "holder", l.token, "mine", l.mine)
	}
}

// sync publishes what a lease now says of this process.
func (a *leaseArbiter) sync(p int, why Reason) {
	l := &a.leases[p]
	if l.mine != noToken {
		a.publish(p, l.mine, l.mine, l.v)
		return
	}
	a.end(p, why, false)
	a.hands[p] = nil
	a.retained[p] = false
}

// stepWhenDue lets the leases decide whenever time alone gives them something to
// do.
func (a *leaseArbiter) stepWhenDue(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-a.poke:
		}
		d, finished := a.stepAll()
		if finished {
			return errFinished
		}
		timer.Reset(d)
	}
}

// stepAll steps every lease and returns how long nothing will be due.
func (a *leaseArbiter) stepAll() (time.Duration, bool) {
	a.consult()
	a.mu.Lock()
	now := a.now()
	var out []outgoing
	a.attend(now)
	a.peers.expire(now)
	next := min(now.mono+lookEvery, a.level(now))
	a.begin(now)
	a.placeAll(now)
	a.recount(now)
	a.tempo.woke(now, a.scheduled, a.set.helloPause)
	for p := range a.leases {
		a.giveUpClaim(p, now)
		out = a.step(p, now, out)
		a.seats.note(p, a.leases[p].standing(now))
		if at, ok := a.wake(p, now); ok {
			next = min(next, at)
		}
	}
	out, next = a.hello(now, a.call(now, out), next)
	held, claiming := a.busy()
	if a.tempo.doubtful(now, held || claiming, a.set.silence()) {
		a.log.doubt()
	}
	finished := a.finished(now)
	a.scheduled = next
	a.unlock()
	a.send(out)
	return max(next-now.mono, 100*time.Microsecond), finished && len(out) == 0
}

// step lets one lease decide, and moves on the orderly end of its term if there
// is one under way. It needs the lock.
func (a *leaseArbiter) step(p int, now instant, out []outgoing) []outgoing {
	l := &a.leases[p]
	if a.delays[p] == unranked && a.claimable(p, now) && a.willing(now) {
		a.place(now, []int{p})
	}
	in, why := a.intentOf(p, now)
	r, ok := l.step(now, in)
	if ok && r.kind == kindRelease {
		a.favour(&r, a.hands[p])
	}
	a.sync(p, why)
	if ok {
		out = append(out, outgoing{p, r})
		switch r.kind {
		case kindRelease:
			a.farewells++
		case kindClaim:
			a.reach.claimed(p, now)
			a.landed[p] = 0
			a.choice.pace.under++
		case kindBeat, kindHello:
		}
	}
	return out
}

// giveUpClaim begins a new incarnation if a claim was acknowledged and has not come
// back within T′: the log has lost it, or reading has stopped. The new one waits for
// T′ again, so that a process that can only write keeps nobody out.
func (a *leaseArbiter) giveUpClaim(p int, now instant) {
	l := &a.leases[p]
	if at := a.landed[p]; l.claiming != 0 && at != 0 && now.mono-at >= a.set.silence() {
		a.landed[p] = 0
		l.start(l.read+1, now)
		a.delays[p] = unranked
		a.seats.wake()
		a.notes.add(slog.LevelWarn, "an acknowledged claim did not come back: starting anew", "partition", p)
	}
}

// wake is when p will have something to do if nothing is read.
func (a *leaseArbiter) wake(p int, now instant) (time.Duration, bool) {
	alive := a.alive(now)
	in := intent{want: a.claims(p, now, alive), alive: alive, delay: max(0, a.delays[p])}
	at, ok := a.leases[p].wake(in)
	if h := a.hands[p]; h != nil && ok {
		at = min(at, h.wake(a.set.successorWait))
	}
	if silent := a.leases[p].silentAt(); a.seats.now[p].status != Vacant && (!ok || silent < at) {
		at, ok = silent, true
	}
	return at, ok
}

// rouse wakes the stepper if p needs it earlier than it will wake by itself.
func (a *leaseArbiter) rouse(p int, now instant) {
	if at, ok := a.wake(p, now); ok && at < a.scheduled {
		a.prod()
	}
}

func (a *leaseArbiter) prod() {
	select {
	case a.poke <- struct{}{}:
	default:
	}
}

// outgoing is a decided record on its way to the log. In which order such
// records reach the log does not matter, so they are sent without the lock.
type outgoing struct {
	partition int
	record    record
}

func (a *leaseArbiter) send(out []outgoing) {
	for _, o := range out {
		a.set.logger.Debug("send", "partition", o.partition, "kind", o.record.kind, "token", o.record.token,
			"read", o.record.read, "seq", o.record.seq)
		report := func(err error) { a.reported(o, err) }
		if err := a.log.append(o.partition, o.record.encode(), report); err != nil {
			report(err)
		}
	}
}

// reported takes the producer's word on a record. A failed report means that the
// record may or may not be in the log. Only claims care, and Close for what it
// sends last.
func (a *leaseArbiter) reported(o outgoing, err error) {
	a.mu.Lock()
	defer a.unlock()
	switch o.record.kind {
	case kindRelease:
		a.farewells--
		a.seats.wake() // StepDown may wait for it
		a.prod()
	case kindHello:
		if o.record.leaving {
			a.farewells--
			a.prod()
		}
	case kindClaim:
		l := &a.leases[o.partition]
		if err == nil && l.me == o.record.member && l.claiming == o.record.seq {
			a.landed[o.partition] = a.now().mono
		}
		if err != nil {
			l.failed(o.record.member, o.record.seq, a.now())
			a.seats.wake() // as above
			a.notes.add(slog.LevelDebug, "claim not confirmed", "partition", o.partition, "error", err)
			a.prod()
		}
	}
}

func (a *leaseArbiter) collect() []term.Change {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Collect(a.now().point())
}

func (a *leaseArbiter) peek() []term.Change {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Peek(a.now().point())
}

func (a *leaseArbiter) drained(units []int, id int64) {
	a.mu.Lock()
	for _, p := range units {
		if h := a.hands[p]; h != nil && a.leases[p].mine == id {
			h.done = true
			a.Done([]int{p})
		}
	}
	a.mu.Unlock()
	a.prod()
}

// busy reports whether anything is held, and whether anything is claimed. It
// needs the lock.
func (a *leaseArbiter) busy() (held, claiming bool) {
	for p := range a.leases {
		held = held || a.leases[p].mine != noToken
		claiming = claiming || a.leases[p].claiming != 0
	}
	return held, claiming
}

// finished reports whether a closing process has nothing more to wait for: all
// is released and acknowledged, or closeTail has passed without that. It needs
// the lock.
func (a *leaseArbiter) finished(now instant) bool {
	held, claiming := a.busy()
	if !a.posture.closing || held {
		return false
	}
	if a.tempo.freeAt == 0 {
		a.tempo.freeAt = now.mono
	}
	return !claiming && a.farewells == 0 || now.mono-a.tempo.freeAt >= closeTail
}

func (a *leaseArbiter) stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts
}
