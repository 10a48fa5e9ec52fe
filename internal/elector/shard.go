package elector

import (
	"iter"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/nominate"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/stats"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
	"github.com/goneli/neli/internal/term"
)

// shard is the roles that have the same logs: the roles of a partition with its one log, or all
// roles with several small logs. It has what this process holds of them, gives up and means to
// claim. Its roles are numbered within it.
type shard struct {
	*common
	byrole.Numbering
	observe.Standings // what is known of who holds what
	lease             leases
	logs              channels // that say so
	main              *channel // the channel that delays Claims
	begun             bool     // reading has begun; nothing is said or claimed before

	own          own                 // roles that this process leads or gives up
	handovers    handover.Handovers  // orderly ends of terms
	claims       vacancy.Claims      // vacancies, and own Claims
	nomination   nominate.Nomination // the nominator's decision
	vacancyStats stats.Vacancies     // for counters

	dueAt     clock.Mono // when time alone has an effect
	untoldAt  clock.Mono // when roles of which the application was not told are looked for again
	recheckAt clock.Mono // when all vacant roles are checked again
	wanted    bool       // no further role is to be given up below `below`
	below     int32      // the bound for which wanted is true
	unwanted  bool       // the last step left roles to be given up by the next one
}

// leases says which process holds which roles, and makes the records for their logs: the only
// log of these roles, or several small logs of which a majority decides. All differences between
// the two are behind it (leases.go), so that the Node has one path for both.
//
// Logs are given by their numbers in Node.channels; an Out has the log's place among those of the
// partition.
type leases interface {
	Known() bool
	Session() lease.Session
	Leads(local int32, now clock.Instant) (token int64, ok bool)
	Mine(local int32) (token int64, ok bool)
	Holder(local int32) (lease.Grantee, bool)
	Holders() iter.Seq[lease.HolderState]
	Each(of func(lease.HolderState) int32, set func(local, value int32))
	Sessions() int
	Roles() int32
	FreeAt(local int32) clock.Raw
	Claiming() (n int, oldest clock.Instant)
	Forget(roles []int32)

	// As returns the session that Holders uses for the process of a record's session.
	As(lease.Session) lease.Session
	// RolesOf returns the roles that a session of Holders holds, ascending.
	RolesOf(lease.Session) []int32
	// Held reports whether a role has a holder whose lease may still be valid by some clock.
	Held(local int32, now clock.Instant) bool
	// Free returns the roles below a number that have no holder and may be claimed.
	Free(below int32, now clock.Instant) []int32
	// Vacant reports whether a role from Changed may be claimed.
	Vacant(local int32, now clock.Instant) bool
	// Owing reports whether a Release has not come back yet.
	Owing(now clock.Instant) bool
	// NewerUntil is until when a member of a newer version may hold roles without a known
	// holder; zero if there is none.
	NewerUntil() clock.Raw
	// Tenure identifies one uninterrupted time of holding a role.
	Tenure(lease.Grantee) int64
	// Ours reports whether this process holds a role, in the term with a token.
	Ours(g lease.Grantee, token int64) bool
	// Earlier reports whether the sender of a record in a log had not yet read of the term with
	// a token.
	Earlier(log int, read, token int64) bool
	// Grant returns the holder of a role in short; ok is false if only Holder can tell.
	Grant(local int32) (token int64, holder int32, ok bool)
	// Version changes whenever a role of a slice (surveyRoles) gets another holder or token; 0:
	// unknown.
	Version(slice int) uint64
	// Turns grows whenever a record may have changed what Known, Holder (but for the times) or
	// FreeAt (of a role whose holder is silent, if it has one) return for any role.
	Turns() uint64

	// Begin, Answered, Read and Failed handle what a log delivers. Begin reports whether that
	// ends all terms and makes the state of roles void. Read takes the error of a record that
	// could not be decoded, and reports whether the state of roles is void because everything
	// became known or the log went back. Failed returns roles that may be claimed again later.
	Begin(log int, e Entry, now clock.Instant) (lost bool)
	Answered(log int, now clock.Instant)
	Read(log int, o int64, r *lease.Record, bad error, now clock.Instant) (ev lease.Event, anew bool)
	Failed(log int, r *lease.Record, now clock.Instant) []int32
	// Changed returns, once, the roles that may have changed.
	Changed() []int32
	// Reminds reports whether Changed repeats vacant roles, and returns roles whose holder's
	// lease is over by the clock.
	Reminds() bool
	// Exhausted reports whether no further term can begin, since tokens are used up.
	Exhausted() bool
	// Term returns the token of this process's term of a role, lapsed or not, and the line of V
	// in the term table that the term follows.
	Term(local int32) (token int64, line int, ok bool)
	// Outdone reports whether records, and not the clock, have ended a term.
	Outdone(local int32) bool
	// InUse yields the lines of V that terms follow, and V is the value of one.
	InUse() iter.Seq[int]
	V(line int) clock.Instant

	// Tick handles the passing of time, and reports whether all terms have lapsed. Roles below
	// a number are wanted; a record takes trip to come back.
	Tick(below int32, trip time.Duration, now clock.Instant) (out []quorum.Out, lapsed bool)
	// Due is when Tick has something to do.
	Due(now clock.Instant) clock.Mono
	// Contest makes Claims of those roles that may be claimed.
	Contest(roles []int32, now clock.Instant) []quorum.Out
	// Later returns those roles that may be claimed only later, and when.
	Later(roles []int32, now clock.Instant) ([]int32, clock.Raw)
	// Keeps reports whether a log needs Beats; led says whether this process has a term.
	Keeps(log int, led bool) bool
	Beat(log int, now clock.Instant) (lease.Record, bool)
	Word(log int, k lease.Kind, now clock.Instant) lease.Record
	Snapshot(log int, now clock.Instant) []lease.Record
	ReleaseOn(log int, roles []int32, now clock.Instant) []lease.Record
	// Owes reports whether Releases have not come back from a log, and Unreleased makes them
	// again. The caller decides when.
	Owes(log int) bool
	Unreleased(log int, now clock.Instant) []lease.Record

	// FreshAt is when a process that knows nothing may claim; Never if it knows something, or if
	// Changed will report it.
	FreshAt() clock.Raw
	// Waits reports whether no Claim is made while another one is undecided, and GiveUp forgets
	// those sent before a time. Other leases delay Claims for each log separately, if it
	// answers slowly or not at all.
	Waits() bool
	GiveUp(sent clock.Instant)
	// Lapses reports whether a session is this process's own, which Tick ends when its leases are
	// over.
	Lapses(lease.Session) bool
	// Reading is how long others may take to read the Claims of all roles, beyond round trips.
	// On one log, a process that claims before it has read another's Claim loses without harm.
	// On small logs each may win on some logs, and has to give all of that back.
	Reading() time.Duration
}

func newShard(k *common, n byrole.Numbering, l leases) *shard {
	s := &shard{common: k, Numbering: n, lease: l}
	s.Standings = observe.NewStandings(n, l, &s.logs, &s.claims)
	s.own = own{numbering: n, lease: l, table: k.terms, tokenBase: k.set.TokenBase}
	s.nomination = nominate.NewNomination(!k.set.Nominated && !k.set.Observer)
	s.claims.Init()
	s.vacancyStats = stats.NewVacancies(l, &s.logs, k.set.T, &k.counts)
	return s
}

// forget forgets the state of the roles.
func (s *shard) forget() {
	s.handovers = handover.Handovers{}
	s.claims.Init()
	s.main.pacing.Think(0)
}

// due is when the shard next has something to do if nothing is read, by the monotonic clock.
func (s *shard) due(now clock.Instant) clock.Mono {
	next := s.lease.Due(now)
	mono := func(t clock.Mono) { next = min(next, t) }
	if s.unwanted && s.own.Len() > 0 {
		mono(now.Mono)
	}
	mono(s.handovers.Due(s.nameAt(), s.set.AnswerWait, s.reach(), s.trip.Takes()))
	if at, ok := s.claimDue(now); ok {
		mono(at)
	}
	mono(now.MonoOf(s.claims.NextSilent()))
	for _, c := range s.logs {
		if !c.begun {
			continue
		}
		if s.lease.Keeps(c.index, s.own.Len() > 0) && s.set.Alive(now) && !c.link.Beating(now, s.set.T) {
			mono(c.beatAt)
		}
		if s.lease.Owes(c.index) && c.releasing == 0 {
			mono(c.releaseAt)
		}
		c.talkDue(now, mono)
	}
	return next
}

// appendAll appends what the leases have made.
func (s *shard) appendAll(out []quorum.Out, now clock.Instant) {
	logs := s.logs
	for _, o := range out {
		if o.Record.Kind == lease.Release {
			logs[o.Log].released(now)
		}
		logs[o.Log].append(now, o.Record)
	}
}

// recheckVacant checks all vacant roles again from time to time. Every way in which a role becomes vacant leads
// to a claim by some process; recheckVacant covers a claim that was lost.
func (s *shard) recheckVacant(now clock.Instant) {
	if now.Mono < s.recheckAt {
		return
	}
	s.recheckAt = now.Mono.Add(max(s.set.T, recheckEvery))
	s.free(now)
	inFlight, _ := s.lease.Claiming()
	if !s.begun || inFlight > 0 || !s.claims.IsEmpty() {
		return
	}
	if s.claims.AnySilent() || len(s.lease.Free(s.localRoles(), now)) > 0 {
		s.reconsiderVacant(now)
	}
}

// free gives back memory for each role that is needed only while roles are vacant. It is called
// now and then, not whenever the last vacancy ends: while roles change hands one batch after the
// other, the memory would be allocated for each of them.
func (s *shard) free(now clock.Instant) {
	s.claims.Free()
	s.vacancyStats.Free()
	s.planner.Free(s.set.T, now)
}

// recheckEvery is the least time between two checks of all vacant roles.
const recheckEvery = 5 * time.Second

// step makes all decisions of one shard. The order matters: what is over ends before anything else
// is decided, and roles are given up before any are claimed.
func (s *shard) step(now clock.Instant) {
	if !s.begun {
		s.dueAt = clock.Never
		return
	}
	if s.startup.Over(now) {
		s.reconsiderAllVacant(now) // by now the other members are known
	}
	logs := s.logs
	for _, c := range logs {
		if c.begun {
			c.catchUp(now)
		}
	}
	s.lapse(now)
	s.giveUp(now)
	s.advance(now)
	for _, c := range logs {
		c.repeat(now)
	}
	s.beat(now, 0)
	s.noticeSilent(now)
	s.claim(now)
	s.sync(now)
	for _, c := range logs {
		if c.begun {
			c.greet(now)
			c.lookBack(now)
			c.answer(now)
		}
	}
	s.dueAt = s.due(now)
}

// lapse ends what no longer leads, because of the clock or because the application was told so.
func (s *shard) lapse(now clock.Instant) {
	s.giveBack(s.own.takeOver(), nil, term.Lapsed, now)
	s.giveBackUntold(now)
	below := int32(0)
	if s.willing(now) {
		below = s.localRoles()
	}
	out, lapsed := s.lease.Tick(below, s.trip.Takes(), now)
	if lapsed {
		s.end(s.own.Roles(), s.lapsed(now))
	}
	s.sync(now)
	s.appendAll(out, now)
	if lapsed {
		s.reconsiderVacant(now) // Claims in flight died with the session: plan again.
	}
}

// lapsed returns why terms have lapsed at time now.
func (k *common) lapsed(now clock.Instant) term.Reason {
	if !k.set.Alive(now) {
		return term.NotPulsed
	}
	return term.Lapsed
}

// beat appends a Beat to each log with a held role if one is due there within early. It sends none
// to a log that returns nothing, where Beats would pile up.
func (s *shard) beat(now clock.Instant, early time.Duration) {
	for _, c := range s.logs {
		if !s.lease.Keeps(c.index, s.own.Len() > 0) || now.Mono < c.beatAt.Add(-early) ||
			c.link.Beating(now, s.set.T) || !s.set.Alive(now) {
			continue
		}
		if r, ok := s.lease.Beat(c.index, now); ok {
			c.append(now, r)
		}
	}
}

// local returns where a role lives.
func (k *common) local(role int) (*shard, int32) {
	return k.shards[role%len(k.shards)], int32(role / len(k.shards))
}

// localRoles is how many of the first R roles are in the shard.
func (s *shard) localRoles() int32 {
	return s.Count(s.desired.Roles)
}

// sync compares roles that may have changed with the roles held here. It ends terms before it
// renews a line of V, and renews lines before it shifts terms to them, so that a term that goes on
// is led throughout. It is called after each record, so no log was lost and won again in between:
// until a term is shifted, its former line says no more than its new one.
func (s *shard) sync(now clock.Instant) {
	d := s.own.compare(s.lease.Changed(), s.claims.IsListed, now)
	s.end(d.superseded, term.Superseded)
	if len(d.lapsed) > 0 {
		s.end(d.lapsed, s.lapsed(now))
	}
	s.own.renew()
	s.own.shift(d.shifted)
	for _, w := range d.gained {
		s.gain(w, now)
	}
	s.claims.Drop(d.taken)
	s.vacate(d.free, now)
}

// gain begins the terms of roles won by one Claim.
func (s *shard) gain(w won, now clock.Instant) {
	s.own.gain(w, func(local int32) vacancy.Cause { return s.claims.CauseOf(local, s.set.Process) }, now)
	s.wanted = false
	if s.main.beatAt < now.Mono {
		s.main.beatAt = now.Mono.Add(s.set.Every)
	}
}

// end ends the terms of roles that are no longer held.
func (s *shard) end(roles []int32, why term.Reason) {
	for _, local := range roles {
		s.handovers.Drop(local)
	}
	s.own.end(roles, why)
}

// End ends all terms: the log has failed permanently, or this process has closed. Nothing is read from
// now on, so nobody knows for how long roles that are vacant now stay vacant: they do not count.
func (n *Node) End(why term.Reason) {
	for _, s := range n.shards {
		s.end(s.own.Roles(), why)
		s.vacancyStats.End()
	}
}
