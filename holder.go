package neli

import (
	"iter"
	"time"
)

// Who leads, as others see it: what a process has read of a partition's log,
// told with its age.

// Status is what is known of who holds a partition.
type Status int

const (
	// Unknown: this process has not read enough yet, or lost its place in the log.
	// That ends with the holder's next beat, or after T′ without any.
	Unknown Status = iota
	// Vacant: no leader. The holder has released, or nothing was read of it for T′,
	// by which time its lease is over by any clock. (T′ is HeartbeatTimeout,
	// corrected for MaxClockDrift.) A process that is cut off reads nothing either,
	// and so takes every partition for vacant after T′.
	Vacant
	// Held: a valid record of the holder was read less than T′ ago.
	Held
)

func (s Status) String() string { return nameOf(int(s), "unknown", "vacant", "held") }

// Holder is who held a role when a certain record was written: the newest one of
// its term that was read here.
type Holder struct {
	// Name is the holder's Config.Name: put into it what others need to reach it.
	Name string
	// Member is the holder's random id, as in Member.ID: names need not be unique.
	Member string
	// Token is the fencing token of the term.
	Token int64
	// Since is when this process read the claim with which the term began. If it
	// came later, or lost its place in the log meanwhile, it is when it first learnt
	// of the term, which began some time before. By this process's wall clock.
	Since time.Time
	// Seen is when this process read the record. By its wall clock.
	Seen time.Time
	// Age is how long before the answer that was: the longer of what the monotonic
	// and the wall clock say, so that a suspension counts. The record was written
	// earlier than it was read: by the delay of delivery, and for a process that was
	// cut off and catches up, by as long as that lasted.
	Age time.Duration
}

// Standing is what is known of one partition.
type Standing struct {
	Partition int
	Status    Status
	Holder    Holder // if Held

	partitions, roles int
}

// Roles yields the roles that live on the partition, ascending: those below R, as
// this process knows it, at the time of the answer.
func (s Standing) Roles() iter.Seq[int] {
	if s.partitions == 0 {
		return func(func(int) bool) {}
	}
	return rolesOn(s.Partition, s.partitions, s.roles)
}

// standing is what makes a Standing differ from the one before: all but the age.
type standing struct {
	status Status
	token  int64
	member string // incarnation
}

// standing says what is known of the holder at time now. What was in the log
// before this process came says nothing, for nobody knows how old it is: the
// holder's next beat does. Silence is measured as a claimant does it, by the
// monotonic clock.
func (l *lease) standing(now instant) standing {
	switch {
	case now.mono >= l.silentAt():
		return standing{status: Vacant}
	case l.token == tokenUnknown || l.last < l.live:
		return standing{}
	case l.token == tokenNone:
		return standing{status: Vacant}
	}
	return standing{Held, l.token, l.member}
}

// silentAt is the monotonic time at which the holder's lease is over by any clock,
// if nothing is read until then.
func (l *lease) silentAt() time.Duration { return l.quiet.mono + l.wait }

// describe writes out a standing of this lease at time now.
func (l *lease) describe(s standing, now instant) Standing {
	d := Standing{Status: s.status}
	if s.status == Held {
		// quiet is when the newest valid record was read: with the token known there
		// is no other that moves it.
		d.Holder = Holder{Name: l.holder, Member: processOf(s.member), Token: s.token,
			Since: l.since.time(), Seen: l.quiet.time(), Age: now.ageAtMost(l.quiet)}
	}
	return d
}

// seats is what is known of all partitions, and who wants to be told of changes.
// Its methods need the arbiter's lock.
type seats struct {
	now      []standing // by partition, when it was last looked at
	watchers map[*watcher]struct{}
}

// watcher is one Watch under way: what its consumer was told last of each
// partition. It is woken by any change, and told of those that still are changes
// when it has time; so it costs no more than this, however slow it is.
type watcher struct {
	bell chan struct{}
	told []standing
	next int // the partition to be looked at next: all have their turn
}

func (s *seats) open(m int) { s.now = make([]standing, m) }

// note takes note of a partition's standing, and wakes the watchers if it is
// another one than before.
func (s *seats) note(p int, now standing) {
	if s.now[p] == now {
		return
	}
	s.now[p] = now
	s.wake()
}

// wake lets all who wait for a change look again.
func (s *seats) wake() {
	for w := range s.watchers {
		select {
		case w.bell <- struct{}{}:
		default:
		}
	}
}

func (s *seats) watch() *watcher {
	w := &watcher{bell: make(chan struct{}, 1)}
	if s.watchers == nil {
		s.watchers = map[*watcher]struct{}{}
	}
	s.watchers[w] = struct{}{}
	return w
}

func (s *seats) unwatch(w *watcher) { delete(s.watchers, w) }

// change returns a partition of which w was told something else than what is so
// at time now, and counts it as told. ok is false if there is none.
func (w *watcher) change(leases []lease, now instant) (p int, s standing, ok bool) {
	if len(w.told) != len(leases) {
		w.told = make([]standing, len(leases))
	}
	for range leases {
		p = w.next
		w.next = (p + 1) % len(leases)
		if s = leases[p].standing(now); s != w.told[p] {
			w.told[p] = s
			return p, s, true
		}
	}
	return 0, standing{}, false
}
