package elector

import (
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/leases"
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
	leases            leases.Leases
	traits            leases.Traits
	logs              channels // that say so
	main              *channel // the channel that delays Claims
	begun             bool     // reading has begun; nothing is said or claimed before

	own          leases.Own          // roles that this process leads or gives up
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

	reading time.Duration // how long others may take to read Claims: see leases.Ticked
}

func newShard(k *common, n byrole.Numbering, l leases.Leases, short observe.Short, t leases.Traits) *shard {
	s := &shard{common: k, Numbering: n, leases: l, traits: t}
	s.Standings = observe.NewStandings(n, l, short, t.Tenure, &s.logs, &s.claims)
	s.own = leases.NewOwn(n, l, t, k.set.Process, k.terms, k.set.TokenBase)
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
	next := s.leases.Due(now)
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
		if s.keepsAlive(c) && s.set.Alive(now) && !c.link.Beating(now, s.set.T) {
			mono(c.beatAt)
		}
		if c.log.Owing() && c.releasing == 0 {
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
	if !s.begun || s.logs.claiming() || !s.claims.IsEmpty() {
		return
	}
	if s.claims.AnySilent() || len(s.leases.Free(s.localRoles(), now)) > 0 {
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
	s.giveBack(s.own.TakeOver(), nil, term.Lapsed, now)
	s.giveBackUntold(now)
	below := int32(0)
	if s.willing(now) {
		below = s.localRoles()
	}
	t := s.leases.Tick(below, s.trip.Takes(), now)
	s.reading = t.Reading
	if t.Lapsed {
		s.end(s.own.Roles(), s.lapsed(now))
	}
	s.sync(now)
	s.appendAll(t.Out, now)
	if t.Lapsed {
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

// keepsAlive reports whether a log needs Beats. Grants on a small log are kept alive there, with or without
// a term.
func (s *shard) keepsAlive(c *channel) bool {
	if s.traits.Together {
		return c.log.Holding() > 0
	}
	return s.own.Len() > 0
}

// beat appends a Beat to each log with a held role if one is due there within early. It sends none
// to a log that returns nothing, where Beats would pile up.
func (s *shard) beat(now clock.Instant, early time.Duration) {
	for _, c := range s.logs {
		if !s.keepsAlive(c) || now.Mono < c.beatAt.Add(-early) ||
			c.link.Beating(now, s.set.T) || !s.set.Alive(now) {
			continue
		}
		if r, ok := s.leases.Beat(c.index, now); ok {
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
	d := s.own.Compare(s.leases.Changed(), s.claims.IsListed, now)
	s.end(d.Superseded, term.Superseded)
	if len(d.Lapsed) > 0 {
		s.end(d.Lapsed, s.lapsed(now))
	}
	s.own.Renew()
	s.own.Shift(d.Shifted, now)
	for _, w := range d.Gained {
		s.gain(w, now)
	}
	s.claims.Drop(d.Taken)
	s.vacate(d.Free, now)
}

// gain begins the terms of roles won by one Claim.
func (s *shard) gain(w leases.Won, now clock.Instant) {
	s.own.Gain(w, func(local int32) vacancy.Cause { return s.claims.CauseOf(local, s.set.Process) }, now)
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
	s.own.End(roles, why)
}

// End ends all terms: the log has failed permanently, or this process has closed. Nothing is read from
// now on, so nobody knows for how long roles that are vacant now stay vacant: they do not count.
func (n *Node) End(why term.Reason) {
	for _, s := range n.shards {
		s.end(s.own.Roles(), why)
		s.vacancyStats.End()
	}
}
