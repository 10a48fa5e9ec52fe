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
	set   *Settings
	terms *term.Table
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

func newShard(set *Settings, terms *term.Table, counts *stats.Counters, n byrole.Numbering, l leases.Leases, short observe.Short, t leases.Traits) *shard {
	s := &shard{set: set, terms: terms, Numbering: n, leases: l, traits: t}
	s.Standings = observe.NewStandings(n, l, short, t.Tenure, &s.logs, &s.claims)
	s.own = leases.NewOwn(n, l, t, set.Process, terms, set.TokenBase)
	s.nomination = nominate.NewNomination(!set.Nominated && !set.Observer)
	s.claims.Init()
	s.vacancyStats = stats.NewVacancies(l, &s.logs, set.T, counts)
	return s
}

// forget forgets the state of the roles.
func (s *shard) forget() {
	s.handovers = handover.Handovers{}
	s.claims.Init()
	s.main.pacing.Think(0)
}

// due is when the shard next has something to do if nothing is read, by the monotonic clock.
func (s *shard) due(in *In) clock.Mono {
	next := s.leases.Due(in.now)
	mono := func(t clock.Mono) { next = min(next, t) }
	if s.unwanted && s.own.Len() > 0 {
		mono(in.now.Mono)
	}
	mono(s.handovers.Due(in.nameAt(), s.set.SuccessorWait, s.reach(), in.trip.Takes()))
	if at, ok := s.claimDue(in); ok {
		mono(at)
	}
	mono(in.now.MonoOf(s.claims.NextSilent()))
	for _, c := range s.logs {
		if !c.begun {
			continue
		}
		if s.keepsAlive(c) && s.set.Alive(in.now) && !c.link.Beating(in.now, s.set.T) {
			mono(c.beatAt)
		}
		if c.log.Owing() && c.releasing == 0 {
			mono(c.releaseAt)
		}
		s.talkDue(c, in, mono)
	}
	return next
}

// appendAll appends what the leases have made.
func (s *shard) appendAll(out []quorum.Out, in *In) {
	logs := s.logs
	for _, o := range out {
		if o.Record.Kind == lease.Release {
			logs[o.Log].released(in.now)
		}
		logs[o.Log].append(in, o.Record)
	}
}

// recheckVacant checks all vacant roles again from time to time. Every way in which a role becomes vacant leads
// to a claim by some process; recheckVacant covers a claim that was lost.
func (s *shard) recheckVacant(in *In) {
	s.recheckAt = in.now.Mono.Add(max(s.set.T, recheckEvery))
	s.free()
	if !s.begun || s.logs.claiming() || !s.claims.IsEmpty() {
		return
	}
	if s.claims.AnySilent() || len(s.leases.Free(s.Count(in.desired.Roles), in.now)) > 0 {
		s.reconsiderVacant(in)
	}
}

// free gives back memory for each role that is needed only while roles are vacant. It is called
// now and then, not whenever the last vacancy ends: while roles change hands one batch after the
// other, the memory would be allocated for each of them.
func (s *shard) free() {
	s.claims.Free()
	s.vacancyStats.Free()
}

// recheckEvery is the least time between two checks of all vacant roles.
const recheckEvery = 5 * time.Second

// step makes all decisions of one shard. The order matters: what is over ends before anything else
// is decided, and roles are given up before any are claimed.
func (s *shard) step(in *In) {
	if !s.begun {
		s.dueAt = clock.Never
		return
	}
	logs := s.logs
	for _, c := range logs {
		if c.begun {
			s.catchUp(c, in)
		}
	}
	s.lapse(in)
	s.giveUp(in)
	s.advance(in)
	for _, c := range logs {
		s.repeat(c, in)
	}
	s.beat(in, 0)
	s.noticeSilent(in)
	s.claim(in)
	s.sync(in)
	for _, c := range logs {
		if c.begun {
			s.greet(c, in)
			c.lookBack(in)
			c.answer(in)
		}
	}
	s.dueAt = s.due(in)
}

// lapse ends what no longer leads, because of the clock or because the application was told so.
func (s *shard) lapse(in *In) {
	s.giveBack(s.own.TakeOver(), nil, term.Lapsed, in)
	s.giveBackUntold(in)
	below := int32(0)
	if s.willing(in) {
		below = s.Count(in.desired.Roles)
	}
	t := s.leases.Tick(below, in.trip.Takes(), in.now)
	s.reading = t.Reading
	if t.Lapsed {
		s.end(s.own.Roles(), in.lapsed())
	}
	s.sync(in)
	s.appendAll(t.Out, in)
	if t.Lapsed {
		s.reconsiderVacant(in) // Claims in flight died with the session: plan again.
	}
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
func (s *shard) beat(in *In, early time.Duration) {
	for _, c := range s.logs {
		if !s.keepsAlive(c) || in.now.Mono < c.beatAt.Add(-early) ||
			c.link.Beating(in.now, s.set.T) || !s.set.Alive(in.now) {
			continue
		}
		if r, ok := s.leases.Beat(c.index, in.now); ok {
			c.append(in, r)
		}
	}
}

// sync compares roles that may have changed with the roles held here. It ends terms before it
// renews a line of V, and renews lines before it shifts terms to them, so that a term that goes on
// is led throughout. It is called after each record, so no log was lost and won again in between:
// until a term is shifted, its former line says no more than its new one.
func (s *shard) sync(in *In) {
	d := s.own.Compare(s.leases.Changed(), s.claims.IsListed, in.now)
	s.end(d.Superseded, term.Superseded)
	if len(d.Lapsed) > 0 {
		s.end(d.Lapsed, in.lapsed())
	}
	s.own.Renew()
	s.own.Shift(d.Shifted, in.now)
	for _, w := range d.Gained {
		s.gain(w, in)
	}
	s.claims.Drop(d.Taken)
	s.vacate(d.Free, in)
}

// gain begins the terms of roles won by one Claim.
func (s *shard) gain(w leases.Won, in *In) {
	s.own.Gain(w, func(local int32) vacancy.Cause { return s.claims.CauseOf(local, s.set.Process) }, in.now)
	s.wanted = false
	if s.main.beatAt < in.now.Mono {
		s.main.beatAt = in.now.Mono.Add(s.set.HeartbeatInterval)
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
