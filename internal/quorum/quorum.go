package quorum

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// MaxLogs is how many logs there may be.
const MaxLogs = 7

// Rules are what a Lease is told once.
type Rules struct {
	Logs    int           // N
	Process string        // random, fresh at every boot
	Name    string        // for people
	T       time.Duration // the lease: one for the whole group, pinned where a newcomer must see it
	Rho     float64       // ρ, pinned likewise
	History int           // K: a Snapshot is due after so many records

	Random func(time.Duration) time.Duration // in [0, d)
}

// Lease is one process's lease on a majority of logs. It is not safe for concurrent use.
type Lease struct {
	rules    Rules
	majority int
	logs     []*logView
	bal      int64 // this process's ballot
	seen     int64 // the largest of anybody else's
	units    []unit
	groups   []*group // units that are sustained by the same logs
	byKind   map[kind]*group

	want   func(role int32) bool
	limit  int32 // wanted roles are below it
	policy policy
}

// logView is what a Lease keeps of one log, beside the log's own lease. That is more than a
// dozen fields because each is of one log and of one concern: the middle ones are when
// something was last said there, the others when something will have to be.
type logView struct {
	lease    *lease.Lease
	begun    bool
	end      int64         // of the log when reading began: what lies before is of unknown age
	answered clock.Instant // when the log last said anything
	back     int64         // of the present session, as of the last look

	said      int64      // the largest ballot of evidence that was sent by this session
	beatAt    clock.Mono // monotonic: when evidence was last sent
	releaseAt clock.Mono // monotonic: when Releases may be sent again
	overAt    clock.Raw  // when the next holder's lease will be over
	over      map[lease.Session]clock.Raw
	freshAt   clock.Raw // the time for a fresh Claim that was already noticed

	tries   int        // Claims in a row that failed, or did not come back
	claimAt clock.Mono // monotonic: no Claim before, for that reason; 0: at any time
}

// Out is a record for a log.
type Out struct {
	Log    int
	Record lease.Record
}

// logs is a set of logs.
type logs uint8

func one(log int) logs            { return 1 << log }
func (s logs) has(log int) bool   { return s&one(log) != 0 }
func (s logs) size() int          { return bits.OnesCount8(uint8(s)) }
func (s logs) with(log int) logs  { return s | one(log) }
func (s logs) minus(log int) logs { return s &^ one(log) }

// New returns a Lease that knows nothing. It wants no role until Want is called.
func New(rules Rules) *Lease {
	if rules.Logs < 1 || rules.Logs > MaxLogs {
		panic(fmt.Sprintf("quorum: %d logs, must be between 1 and %d", rules.Logs, MaxLogs))
	}
	q := &Lease{rules: rules, majority: rules.Logs/2 + 1, byKind: map[kind]*group{}, want: func(int32) bool { return false }}
	for range rules.Logs {
		q.logs = append(q.logs, &logView{lease: lease.New(lease.Rules{Process: rules.Process, Name: rules.Name, T: rules.T,
			Rho: rules.Rho, History: rules.History, Longest: rules.T, Dense: true})})
	}
	q.policy.trip = rules.T / 100
	return q
}

// Begin starts to read a log at offset s: at boot, when the log has another id, and
// whenever the read position jumps. end is where the log ends, and top the largest ballot
// that it was given, 0 if it does not say. now must have been read after all these were
// known. What was held there is this process's no more.
func (q *Lease) Begin(log int, s, end, top int64, now clock.Instant) {
	q.check(now)
	v := q.logs[log]
	v.end = end
	q.seen = max(q.seen, min(top, lease.MaxBallot))
	// Never whole: another incarnation may have been led a moment before this one was born.
	v.lease.Begin(s, false, now)
	v.begun = true
	q.Answered(log, now)
	q.begun(log)
	q.check(now)
}

// begun forgets what was concluded from a log whose lease has begun anew.
func (q *Lease) begun(log int) {
	v := q.logs[log]
	v.overAt, v.over, v.freshAt = clock.Never, nil, 0
	v.tries, v.claimAt = 0, 0
	q.renewed(log)
	q.policy.lookAll = true
}

// renewed takes note that the session on a log is a new one.
func (q *Lease) renewed(log int) {
	v := q.logs[log]
	v.back, v.said = 0, 0
	q.dropAll(log)
}

// Answered takes note that a log has said anything, be it only where it ends.
func (q *Lease) Answered(log int, now clock.Instant) {
	if v := q.logs[log]; v.begun && !q.reachable(v, now) {
		q.policy.lookAll = true
	}
	q.logs[log].answered = now
}

// reachable reports whether a log has answered of late: what cannot be reached is not
// claimed.
func (q *Lease) reachable(v *logView, now clock.Instant) bool {
	return v.answered != (clock.Instant{}) && now.Mono.Sub(v.answered.Mono) < q.rules.T/2
}

// Read folds the record r at offset o of a log. now was read after the record was in
// hand.
func (q *Lease) Read(log int, o int64, r *lease.Record, now clock.Instant) lease.Event {
	q.check(now)
	v := q.logs[log]
	v.answered = now
	own := r.Session == v.lease.Session()
	if !own {
		q.seen = max(q.seen, r.Ballot)
	}
	ev := v.lease.Read(o, r, now)
	q.follow(log, ev, now)
	if own && r.Kind == lease.Claim && !ev.Rewound {
		v.tries, v.claimAt = 0, 0
		for _, role := range r.Roles { // what it did not win is decided, too
			q.look(role)
		}
	}
	return ev
}

// ReadNewer takes note of a record of a newer version with the ballot that it bears.
func (q *Lease) ReadNewer(log int, o, ballot int64, now clock.Instant) lease.Event {
	q.check(now)
	q.logs[log].answered = now
	q.seen = max(q.seen, ballot)
	ev := q.logs[log].lease.ReadNewer(o, now)
	q.follow(log, ev, now)
	return ev
}

// Skip takes note of a record that plays no part: of another group, or written to an
// earlier incarnation of the log.
func (q *Lease) Skip(log int, o int64, now clock.Instant) lease.Event {
	q.check(now)
	q.logs[log].answered = now
	ev := q.logs[log].lease.Skip(o, now)
	q.follow(log, ev, now)
	return ev
}

// follow draws the conclusions of what a record did to the lease of a log.
func (q *Lease) follow(log int, ev lease.Event, now clock.Instant) {
	v := q.logs[log]
	if ev.Confirmed { // what was vacant meanwhile could not be claimed
		q.policy.lookAll = true
	}
	switch {
	case ev.Rewound:
		q.begun(log)
	case ev.Known:
		v.lease.Each(func(lease.HolderState) int32 { return 0 }, func(role, _ int32) { q.refresh(log, role) })
		v.overAt, q.policy.lookAll = 0, true
	default:
		for _, role := range ev.Changed {
			q.refresh(log, role)
		}
		if len(ev.Changed) > 0 || ev.Evidence { // of a holder that was not heard before, perhaps
			v.overAt = min(v.overAt, clock.FreeAt(now.Raw, q.rules.T, q.rules.Rho))
		}
	}
	// The rule of tokens: everything that was in the log before this Claim was read, and
	// what is led from now on has a larger ballot than all of it.
	if ev.Won {
		q.lift(q.seen + 1)
	}
	if back := v.lease.Back(); back > v.back {
		v.back = back
		q.raise(log)
	}
	q.check(now)
	q.settle(now)
}

// lift makes this process's ballot at least b.
func (q *Lease) lift(b int64) { q.bal = max(q.bal, min(b, lease.MaxBallot)) }

// young are the logs whose V sustains leadership at time now.
func (q *Lease) young(now clock.Instant) logs {
	var s logs
	for i, v := range q.logs {
		if lease.Young(now, v.lease.V(), q.rules.T) {
			s = s.with(i)
		}
	}
	return s
}

// Leads is the rule: this process leads role iff its term has begun and is sustained by
// a majority: by logs whose fold says that the present session holds the role, from
// which evidence with at least the term's token was read back, and whose V is younger
// than Hold(T). It returns the token.
func (q *Lease) Leads(role int32, now clock.Instant) (token int64, ok bool) {
	u := q.unit(role)
	if u == nil || u.token == 0 || (u.counts&q.young(now)).size() < q.majority {
		return 0, false
	}
	return u.token, true
}

// Term returns the token of role's term, and the line of V that it follows, if it has a
// term.
func (q *Lease) Term(role int32) (token int64, line int, ok bool) {
	u := q.unit(role)
	if u == nil || u.token == 0 {
		return 0, 0, false
	}
	return u.token, int(u.counts), true
}

// Lines is how many lines of V there are: one for each set of logs.
func (q *Lease) Lines() int { return 1 << len(q.logs) }

// V is a line's newest evidence: of the majority of its logs that were heard last, the one
// that was heard first. Zero if there is no majority.
func (q *Lease) V(line int) clock.Instant {
	var all [MaxLogs]clock.Instant
	for i, v := range q.logs {
		all[i] = v.lease.V()
	}
	return majorityth(all[:len(q.logs)], logs(line), q.majority)
}

// majorityth is the majority-th largest of the lower bounds that some logs give for when
// this process was last alive; zero if so many have not given any.
func majorityth(bounds []clock.Instant, of logs, majority int) clock.Instant {
	var vs [MaxLogs]clock.Instant
	n := 0
	for i, at := range bounds {
		if !of.has(i) || at == (clock.Instant{}) {
			continue
		}
		k := n
		for ; k > 0 && vs[k-1].Mono < at.Mono; k-- {
			vs[k] = vs[k-1]
		}
		vs[k] = at
		n++
	}
	if n < majority {
		return clock.Instant{}
	}
	return oldest(vs[:majority])
}

// oldest is the instant that is no younger than any of the given ones by any clock: they
// were not read in the order of their stamps if a clock was set meanwhile.
func oldest(all []clock.Instant) clock.Instant {
	t := all[0]
	for _, u := range all[1:] {
		t.Mono, t.Wall, t.Raw = min(t.Mono, u.Mono), min(t.Wall, u.Wall), min(t.Raw, u.Raw)
		if t.Boot != 0 && u.Boot != 0 {
			t.Boot = min(t.Boot, u.Boot)
		}
	}
	return t
}

// Log is the lease of one log, to be asked and not to be changed.
func (q *Lease) Log(log int) *lease.Lease { return q.logs[log].lease }

// Ballot is this process's ballot.
func (q *Lease) Ballot() int64 { return q.bal }
