package quorum

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// MaxLogs is the largest number of logs.
const MaxLogs = 7

// Rules are the parameters of a Lease.
type Rules struct {
	Logs    int           // N
	Lists   [][]int       // at most two lists of logs; a term needs a majority of each list; none: one list of all logs
	Process string        // random, fresh at every boot
	Name    string        // for people
	T       time.Duration // the lease, the same for the whole group: it is fixed where every newcomer must read it
	Rho     float64       // ρ, fixed in the same way
	History int           // K: a Snapshot is due after at most that many records

	Random func(time.Duration) time.Duration // returns a random duration in [0, d)
}

// Lease is one process's lease on a majority of logs. It is not safe for concurrent use.
type Lease struct {
	rules  Rules
	lists  []list
	logs   []*logView
	bal    int64 // this process's ballot
	seen   int64 // the largest ballot read, but for the present sessions' records
	units  []unit
	groups []*group // units with the same supporting logs
	byKind map[kind]*group

	want   func(role int32) bool
	limit  int32 // wanted roles are below it
	policy policy

	revived uint64 // see Revived
}

// logView is the state that a Lease keeps of one log, in addition to that log's own lease.
type logView struct {
	lease    *lease.Lease
	begun    bool
	end      int64         // the end of the log when reading began: the age of older records is unknown
	answered clock.Instant // when the log last answered
	back     int64         // lease.Back when last looked at

	said    int64      // the largest ballot among the evidence that this session has sent
	beatAt  clock.Mono // when evidence was last sent
	overAt  clock.Raw  // when the next holder's lease will be over
	over    map[lease.Session]clock.Raw
	freshAt clock.Raw // the value of wholeAt that notice has dealt with

	tries   int        // Claims in a row that failed, or did not come back
	claimAt clock.Mono // no Claim before then, because of tries; 0: at any time
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

// list is the logs of one list of hosts. While the hosts change there are two: the old and the new
// one, which may share logs.
type list struct {
	logs     logs
	majority int
}

func newList(all ...int) list {
	l := list{majority: len(all)/2 + 1}
	for _, log := range all {
		l.logs = l.logs.with(log)
	}
	return l
}

// enough reports whether a set has a majority of the logs of each list. The sets of two processes share
// a log even if the processes have only one list in common.
func (q *Lease) enough(s logs) bool {
	for _, l := range q.lists {
		if (s & l.logs).size() < l.majority {
			return false
		}
	}
	return true
}

// New returns a Lease that knows nothing. It wants no role until Want is called.
func New(rules Rules) *Lease {
	if rules.Logs < 1 || rules.Logs > MaxLogs {
		panic(fmt.Sprintf("quorum: %d logs, must be between 1 and %d", rules.Logs, MaxLogs))
	}
	q := &Lease{rules: rules, byKind: map[kind]*group{}, want: func(int32) bool { return false }}
	for _, l := range rules.Lists {
		q.lists = append(q.lists, newList(l...))
	}
	var all []int
	for log := range rules.Logs {
		all = append(all, log)
		q.logs = append(q.logs, &logView{lease: lease.New(lease.Rules{Process: rules.Process, Name: rules.Name, T: rules.T,
			Rho: rules.Rho, History: rules.History, Longest: rules.T, Dense: true})})
	}
	if q.lists == nil {
		q.lists = []list{newList(all...)}
	}
	q.policy.trip = clock.LongTrip(rules.T)
	return q
}

// Begin starts to read a log at offset s: at boot, when the log's id changes, and whenever
// the read position jumps. end is the end of the log. top is the largest ballot in the log,
// or 0 if the log does not tell. now must have been read after all these were known. This
// process holds nothing on that log any more.
func (q *Lease) Begin(log int, s, end, top int64, now clock.Instant) {
	q.check(now)
	v := q.logs[log]
	v.end = end
	q.seen = max(q.seen, min(top, lease.MaxBallot))
	// Never whole: roles may have been led by an earlier incarnation of the log a moment ago.
	v.lease.Begin(s, false, now)
	v.begun = true
	q.Answered(log, now)
	q.begun(log)
	q.check(now)
}

// begun clears the state of a log whose lease has begun again.
func (q *Lease) begun(log int) {
	v := q.logs[log]
	v.overAt, v.over, v.freshAt = clock.Never, nil, 0
	v.tries, v.claimAt = 0, 0
	q.renewed(log)
	q.policy.lookAll = true
}

// renewed notes that this process has a new session on a log.
func (q *Lease) renewed(log int) {
	v := q.logs[log]
	v.back, v.said = 0, 0
	q.dropAll(log)
}

// Answered notes that a log has answered, with a record or only with its end. If it had not answered
// for a while, roles may now be claimed there again.
func (q *Lease) Answered(log int, now clock.Instant) {
	if v := q.logs[log]; v.begun && !q.reachable(v, now) {
		q.policy.lookAll = true
	}
	q.logs[log].answered = now
}

// reachable reports whether a log has answered within T/2. Nothing is claimed on a log that has not.
func (q *Lease) reachable(v *logView, now clock.Instant) bool {
	return v.answered != (clock.Instant{}) && now.Mono.Sub(v.answered.Mono) < clock.Recent(q.rules.T)
}

// Read folds the record r at offset o of a log. now must have been read after the record was received.
func (q *Lease) Read(log int, o int64, r *lease.Record, now clock.Instant) lease.Event {
	q.check(now)
	v := q.logs[log]
	q.Answered(log, now)
	own := r.Session == v.lease.Session()
	if !own {
		q.seen = max(q.seen, r.Ballot)
	}
	ev := v.lease.Read(o, r, now)
	if _, silent := v.over[r.Session]; silent && ev.Evidence {
		delete(v.over, r.Session)
		q.revived++
	}
	q.follow(log, ev, now)
	if own && r.Kind == lease.Claim && !ev.Rewound {
		v.tries, v.claimAt = 0, 0
		for _, role := range r.Roles { // contests that the Claim did not win are decided, too
			q.look(role)
		}
	}
	return ev
}

// ReadNewer consumes a record of a newer version with the given ballot.
func (q *Lease) ReadNewer(log int, o, ballot int64, now clock.Instant) lease.Event {
	q.check(now)
	q.Answered(log, now)
	q.seen = max(q.seen, ballot)
	ev := q.logs[log].lease.ReadNewer(o, now)
	q.follow(log, ev, now)
	return ev
}

// Skip consumes a record that has no effect: one of another group, or one written for an
// earlier incarnation of the log.
func (q *Lease) Skip(log int, o int64, now clock.Instant) lease.Event {
	q.check(now)
	q.Answered(log, now)
	ev := q.logs[log].lease.Skip(o, now)
	q.follow(log, ev, now)
	return ev
}

// follow applies what a record changed in the lease of a log.
func (q *Lease) follow(log int, ev lease.Event, now clock.Instant) {
	v := q.logs[log]
	if ev.Confirmed { // while the fold was in doubt, nothing could be claimed
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
		if len(ev.Changed) > 0 || ev.Evidence { // perhaps by a holder that was not heard before
			v.overAt = min(v.overAt, clock.FreeAt(now.Raw, q.rules.T, q.rules.Rho))
		}
	}
	// The rule of tokens: this process has read everything in the log before this Claim. From now
	// on it leads with a larger ballot than any in those records.
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

// young returns the logs whose V sustains leadership at time now.
func (q *Lease) young(now clock.Instant) logs {
	var s logs
	for i, v := range q.logs {
		if lease.Young(now, v.lease.V(), q.rules.T) {
			s = s.with(i)
		}
	}
	return s
}

// Leads is the rule: this process leads role iff its term has begun and a majority of the
// logs of each list sustains it. A log sustains the term if the present session holds the role in its
// fold, if evidence with at least the term's token was read back from it, and if its V is
// younger than Hold(T). Leads returns the token.
func (q *Lease) Leads(role int32, now clock.Instant) (token int64, ok bool) {
	u := q.unit(role)
	if u == nil || u.token == 0 || !q.enough(u.counts&q.young(now)) {
		return 0, false
	}
	return u.token, true
}

// Term returns the token of role's term and the line of V that the term follows, if this
// process has a term of the role.
func (q *Lease) Term(role int32) (token int64, line int, ok bool) {
	u := q.unit(role)
	if u == nil || u.token == 0 {
		return 0, 0, false
	}
	return u.token, int(u.counts), true
}

// Lines returns how many lines of V there are: one for each set of logs.
func (q *Lease) Lines() int { return 1 << len(q.logs) }

// V returns the majority-th newest V of a line's logs, counted in each list, and of two lists the
// older. It is zero if fewer logs than a majority have a V.
func (q *Lease) V(line int) clock.Instant {
	var all [MaxLogs]clock.Instant
	for i, v := range q.logs {
		all[i] = v.lease.V()
	}
	var bounds [2]clock.Instant
	for i, l := range q.lists {
		if bounds[i] = majorityth(all[:len(q.logs)], logs(line)&l.logs, l.majority); bounds[i] == (clock.Instant{}) {
			return clock.Instant{}
		}
	}
	return oldest(bounds[:len(q.lists)])
}

// majorityth returns the majority-th newest V among the logs of a set. bounds has each log's V, or
// zero. The result is zero if fewer logs than that have one.
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

// oldest takes the minimum for each clock separately: if a clock was set in between, the clocks
// disagree on which instant is the oldest.
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

// Log returns the lease of one log. The caller must not change it.
func (q *Lease) Log(log int) *lease.Lease { return q.logs[log].lease }

// Exhausted reports whether no further term can begin: the next ballot would be the largest there
// is. Wall clocks and terms cannot raise ballots so far, so a record or the top of a log was damaged or
// forged.
func (q *Lease) Exhausted() bool { return max(q.bal, q.seen+1) >= lease.MaxBallot }
