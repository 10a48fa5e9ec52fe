package neli

import "time"

// A lease lives in one totally ordered log and is arbitrated by nothing else
// (design: "the lease is in the log"). Every process folds the same records in
// the same order; a claim is valid if its sender had read everything that
// mattered before it, and a claimant waits until the holder's newest stamp must
// have aged beyond T by any clock. The fold and the decisions are here; time,
// randomness and the log are the caller's.
//
// The rules below are exact. Each was seen to break when it was removed; the
// table in lease_rules_test.go says which test guards which.

// Values of lease.token that are no token.
const (
	tokenNone    = noToken // the partition is free
	tokenUnknown = int64(-2)
)

// leaseRules are the constants of a lease.
type leaseRules struct {
	group string
	name  string
	term  threshold     // T
	wait  time.Duration // T′: silence that proves the holder's lease over
	every time.Duration // between beats
	newID func() string // fresh and never seen before, for each incarnation
}

// silence is T′ = T(1+ρ)/(1−ρ) + margin: a claimant's clock may run fast by ρ
// and the holder's slow by ρ. The margin covers the granularity of clocks.
func silence(t time.Duration, drift float64) time.Duration {
	return time.Duration(float64(t)*(1+drift)/(1-drift)) + time.Millisecond
}

// sent is an own record and the time read before it was handed to the producer.
type sent struct {
	seq   uint64
	stamp instant
}

// lease is one process's view of one partition's lease.
type lease struct {
	leaseRules

	me       string  // this incarnation: a fresh id at every start
	token    int64   // the holder's claim, tokenNone or tokenUnknown
	last     int64   // newest record that is valid, or may be
	read     int64   // newest record consumed
	mine     int64   // own valid claim, or noToken
	v        instant // newest evidence for mine
	quiet    instant // when last moved; silence is counted from here
	claiming uint64  // seq of the claim that is under way, 0 if none

	seq    uint64
	sent   []sent        // own records younger than T, oldest first
	beat   instant       // the last Claim or Beat sent
	pause  time.Duration // no claim before this monotonic time: one was reported as failed
	holder string        // name in the newest valid Claim or Beat, for people

	// What is remembered for those who ask who holds the partition (standing). No
	// rule above reads it.
	member string  // the sender of the newest valid record
	since  instant // when the term was first learnt of
	live   int64   // records before this offset are older than this incarnation, nobody knows by how much
}

// start begins a new incarnation that reads on at offset s: at boot, and
// whenever the read position jumps or reading may have stopped. now must have
// been read after s was known. What was mine is forgotten, so an own claim of an
// earlier incarnation is a stranger's.
func (l *lease) start(s int64, now instant) {
	l.me = l.newID()
	l.sent = l.sent[:0]
	l.token = tokenUnknown
	l.last, l.read = s-1, s-1
	l.mine = noToken
	l.claiming = 0
	l.quiet = now
	l.holder = ""
	l.live = s
}

// consumed is what a record did to the lease.
type consumed struct {
	alarm bool // the log was truncated or recreated: the lease started anew
	own   bool // a record of this incarnation came back
}

// skip takes note of a record that plays no part: a Hello, another group's, a
// malformed one, one of a newer version. It still has a place in the log.
func (l *lease) skip(o int64, now instant) consumed {
	if o <= l.read {
		l.start(o+1, now)
		return consumed{alarm: true}
	}
	l.read = o
	return consumed{}
}

// consume folds the record r at offset o. Records come strictly in log order;
// now is read after the record is in hand.
func (l *lease) consume(r record, o int64, now instant) consumed {
	// The position check comes before everything: whatever the record is, the log
	// went back. A record that has seen what lies ahead says the same.
	if r.kind == kindHello || o <= l.read {
		return l.skip(o, now)
	}
	if r.read >= o || r.token >= o {
		l.start(o+1, now)
		return consumed{alarm: true}
	}
	// Valid ⇔ the sender had read the newest valid record; or it speaks of the
	// term that is known to run.
	valid := r.read >= l.last || (r.kind != kindClaim && r.token == l.token)
	l.read = o
	c := consumed{own: r.member == l.me}
	if c.own && r.seq == l.claiming {
		l.claiming = 0
	}
	if !valid && l.token != tokenUnknown {
		return c
	}
	// Valid, or while the state is unknown one that may be: both restart the wait.
	l.last = o
	l.quiet = now
	if !valid {
		return c
	}
	l.adopt(r, o, now)
	return c
}

// adopt applies a valid record.
func (l *lease) adopt(r record, o int64, now instant) {
	former := l.token
	l.holder, l.member = r.name, r.member
	switch r.kind {
	case kindClaim:
		l.token = o
	case kindBeat:
		l.token = r.token
	case kindRelease:
		l.token = tokenNone
		l.holder = ""
	}
	if l.token != former {
		l.since = now
	}
	own := r.member == l.me
	switch {
	case own && r.kind == kindClaim:
		l.mine = o
		l.v = l.stampOf(r.seq, now)
	case l.token != l.mine:
		l.mine = noToken // fenced, in log order
	case own && r.kind == kindBeat && l.term.young(now, l.v):
		// An unknown seq moves nothing.
		if s := l.stampOf(r.seq, now); l.v.age(s) < 0 {
			l.v = s
		}
		l.settle(r.seq)
	}
}

// stampOf returns the time before record seq was sent. A stamp that is not
// known any more is older than T: the record proves nothing.
func (l *lease) stampOf(seq uint64, now instant) instant {
	for i := len(l.sent) - 1; i >= 0; i-- {
		if l.sent[i].seq == seq {
			return l.sent[i].stamp
		}
	}
	return now.add(-2 * l.term.t)
}

// holds reports whether this process leads by this lease at time now.
func (l *lease) holds(now instant) bool {
	return l.mine != noToken && l.term.young(now, l.v)
}

// intent is what the caller wants of a lease at a step.
type intent struct {
	want  bool          // claim when it is possible: nominated, healthy, open
	keep  bool          // do not give up what is held: wanted, or not yet drained
	alive bool          // the application is alive: beats may be sent
	delay time.Duration // preference among claimants: jitter and rank
}

// step decides what to do at time now: at most one record to append. now is the
// stamp of that record, so it must have been read before. A released term is
// forgotten before the caller can send its Release.
func (l *lease) step(now instant, in intent) (record, bool) {
	switch {
	case l.mine != noToken && (!l.holds(now) || !in.keep):
		k := l.mine
		l.mine = noToken
		return l.send(kindRelease, k, now), true
	case l.mine != noToken && in.alive && l.beatDue(now):
		return l.send(kindBeat, l.mine, now), true
	case l.mine == noToken && in.want && l.claiming == 0 && now.mono >= l.claimAt(in.delay):
		r := l.send(kindClaim, noToken, now)
		l.claiming = r.seq
		return r, true
	}
	return record{}, false
}

// beatDue reports whether a beat is due. Beats fall on multiples of the interval
// since the process started, the same for all partitions, so that they leave
// together: spread out they cost twice the CPU.
func (l *lease) beatDue(now instant) bool {
	return now.mono/l.every != l.beat.mono/l.every
}

// beatAt is the next time at which a beat will be due.
func (l *lease) beatAt() time.Duration { return (l.beat.mono/l.every + 1) * l.every }

// claimAt is the monotonic time from which this process may claim, if nothing
// is read until then.
func (l *lease) claimAt(delay time.Duration) time.Duration { return max(l.vacantAt()+delay, l.pause) }

// vacantAt is the monotonic time from which nobody can lead any more, if nothing is
// read until then: after a Release at once, else after T′ of silence.
func (l *lease) vacantAt() time.Duration {
	at := l.quiet.mono
	if l.token != tokenNone {
		at += l.wait
	}
	return at
}

// wake is the monotonic time at which step will have something to do, if
// nothing is read until then; ok is false when it never will.
func (l *lease) wake(in intent) (at time.Duration, ok bool) {
	switch {
	case l.mine != noToken && !in.alive:
		return l.v.mono + l.term.t, true
	case l.mine != noToken:
		// The lapse by the monotonic clock; a wall clock that is set forward is
		// noticed at the next beat.
		return min(l.v.mono+l.term.t, l.beatAt()), true
	case in.want && l.claiming == 0:
		return l.claimAt(in.delay), true
	}
	return 0, false
}

// send numbers and stamps a record.
func (l *lease) send(k kind, token int64, now instant) record {
	l.seq++
	if k != kindRelease {
		l.forget(now)
		l.sent = append(l.sent, sent{seq: l.seq, stamp: now})
		l.beat = now
	}
	return record{kind: k, group: l.group, member: l.me, name: l.name, token: token, read: l.read, seq: l.seq}
}

// forget drops stamps older than T, but never that of the claim under way.
func (l *lease) forget(now instant) {
	n := 0
	for n < len(l.sent) && l.sent[n].seq != l.claiming && now.age(l.sent[n].stamp) > l.term.t {
		n++
	}
	l.sent = l.sent[:copy(l.sent, l.sent[n:])]
}

// settle drops the stamps up to that of record seq, which was read back: none of
// them can move V any more.
func (l *lease) settle(seq uint64) {
	n := 0
	for n < len(l.sent) && l.sent[n].seq <= seq {
		n++
	}
	l.sent = l.sent[:copy(l.sent, l.sent[n:])]
}

// failed takes the producer's word that the claim seq of incarnation me could
// not be confirmed. It may be in the log all the same; a new claim is allowed
// after one beat interval, and never on a timer alone: a process that can write
// but not read would keep everyone out.
func (l *lease) failed(me string, seq uint64, now instant) {
	if l.me == me && l.claiming == seq && seq != 0 {
		l.claiming = 0
		l.pause = now.mono + l.every
	}
}
