package elector

import (
	"slices"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/channel"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/nominate"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/stats"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/elector/warm"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
	"github.com/goneli/neli/internal/term"
)

// shard is the roles that have the same logs: the roles of a partition with its one log, or all
// roles with several small logs. It keeps which of them this process holds, gives up and means to
// claim. Its roles are numbered within it.
type shard struct {
	set     *Settings
	desired *Desired
	members told.Roll
	home    int
	out     *told.Out
	terms   *term.Table
	warm    *warm.Exchange
	byrole.Numbering
	observe.Standings // who is known to hold what
	leases            leases.Leases
	traits            leases.Traits
	logs              channel.Channels // the logs of these roles
	main              *channel.Channel // the channel that delays Claims
	begun             bool             // reading has begun; nothing is said or claimed before
	joined            bool             // another process held roles when this one learned the fold

	own          leases.Own          // roles that this process leads or gives up
	handovers    handover.Handovers  // orderly ends of terms
	claims       vacancy.Claims      // vacancies, and own Claims
	nomination   nominate.Nomination // the nominator's decision
	vacancyStats stats.Vacancies     // for counters

	dueAt     clock.Mono // when time alone has an effect
	untoldAt  clock.Mono // when roles of which the application was not told are looked for again
	recheckAt clock.Mono // when all vacant roles are checked again
	wanted    bool       // held roles from `below` on were looked for, and are being given up
	below     int32      // the bound for which wanted is true
	unwanted  bool       // the last step left roles to be given up by the next one

	reading time.Duration // how long others may take to read Claims: see leases.Ticked
}

func newShard(p told.Process, terms *term.Table, x *warm.Exchange, counts *stats.Counters, n byrole.Numbering, l leases.Leases, short observe.Short, t leases.Traits) *shard {
	set := p.Set
	s := &shard{set: set, desired: p.Desired, members: p.Members, home: p.Home, out: p.Out, terms: terms, warm: x, Numbering: n, leases: l, traits: t}
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
	s.main.Pacing.Think(0)
}

// due is when the shard next has something to do if nothing is read, by the monotonic clock.
func (s *shard) due(in told.In, now clock.Instant) clock.Mono {
	next := s.leases.Due(now)
	mono := func(t clock.Mono) { next = min(next, t) }
	if s.unwanted && s.own.Len() > 0 {
		mono(now.Mono)
	}
	mono(s.handovers.Due(in.NameAt, s.set.SuccessorWait, s.reach(), in.Takes))
	if at, ok := s.claimDue(now); ok {
		mono(at)
	}
	mono(now.MonoOf(s.claims.NextSilent()))
	for _, c := range s.logs {
		if !c.Begun() {
			continue
		}
		if s.keepsAlive(c) && s.set.Alive(now) && !c.Link.Beating(now, s.set.T) {
			mono(c.BeatAt)
		}
		mono(c.RepeatAt())
		s.talkDue(c, in, mono, now)
	}
	return next
}

// appendAll appends what the leases have made.
func (s *shard) appendAll(out []quorum.Out, now clock.Instant) {
	logs := s.logs
	for _, o := range out {
		if o.Record.Kind == lease.Release {
			logs[o.Log].Released(now)
		}
		logs[o.Log].Append(now, o.Record)
	}
}

// recheckVacant checks all vacant roles again from time to time. Every way in which a role becomes vacant leads
// to a claim by some process; recheckVacant covers a claim that was lost.
func (s *shard) recheckVacant(in told.In, now clock.Instant) {
	s.recheckAt = now.Mono.Add(max(s.set.T, recheckEvery))
	s.free()
	if !s.begun || s.logs.Claiming() || !s.claims.IsEmpty() {
		return
	}
	if s.claims.AnySilent() || len(s.leases.Free(s.Count(s.desired.Roles), now)) > 0 {
		s.reconsiderVacant(in, now)
	}
}

// free gives back the memory that each role needs only while roles are vacant. It is called now and
// then, not whenever the last vacancy ends: while roles change hands batch by batch, the memory
// would be allocated again for each batch.
func (s *shard) free() {
	s.claims.Free()
	s.vacancyStats.Free()
}

// recheckEvery is the least time between two checks of all vacant roles.
const recheckEvery = 5 * time.Second

// step makes all decisions of one shard. The order matters: what is over ends before anything else
// is decided, and roles are given up before any are claimed.
func (s *shard) step(in told.In, now clock.Instant) {
	if !s.begun {
		s.dueAt = clock.Never
		return
	}
	logs := s.logs
	for _, c := range logs {
		if c.Begun() {
			s.catchUp(c, in, now)
		}
	}
	s.lapse(in, now)
	s.giveUp(in, now)
	s.advance(in.Takes, now)
	for _, c := range logs {
		c.Repeat(s.own.Len() > 0, s.leases.Unreleased, now)
	}
	s.beat(0, now)
	s.noticeSilent(in, now)
	s.claim(in, now)
	s.sync(in, now)
	for _, c := range logs {
		if c.Begun() {
			s.greet(c, in, now)
			c.LookBack(in.Takes, now)
			c.Answer(now)
		}
	}
	s.dueAt = s.due(in, now)
}

// lapse ends terms that are over by the clock, or of whose end the application was told.
func (s *shard) lapse(in told.In, now clock.Instant) {
	s.giveBack(s.own.TakeOver(), nil, term.Lapsed, now)
	s.giveBackUntold(now)
	below := int32(0)
	if s.willing(now) {
		below = s.Count(s.desired.Roles)
	}
	t := s.leases.Tick(below, in.Takes, now)
	s.reading = t.Reading
	if t.Lapsed {
		s.end(s.own.Roles(), s.lapsed(now))
	}
	s.sync(in, now)
	s.appendAll(t.Out, now)
	if t.Lapsed {
		s.reconsiderVacant(in, now) // Claims in flight died with the session: plan again.
	}
}

// keepsAlive reports whether a log needs Beats. Grants on a small log are kept alive there, with or without a term.
func (s *shard) keepsAlive(c *channel.Channel) bool {
	if s.traits.Together {
		return c.Log.Holding() > 0
	}
	return s.own.Len() > 0
}

// beat appends a Beat to each log with a held role if one is due there within early. It sends none
// while one is in flight: to a log that returns nothing, Beats would pile up.
func (s *shard) beat(early time.Duration, now clock.Instant) {
	for _, c := range s.logs {
		if !s.keepsAlive(c) || now.Mono < c.BeatAt.Add(-early) ||
			c.Link.Beating(now, s.set.T) || !s.set.Alive(now) {
			continue
		}
		if r, ok := s.leases.Beat(c.Index, now); ok {
			c.Append(now, r)
		}
	}
}

// sync compares roles that may have changed with the roles held here. It ends terms before it
// renews a line of V, and renews lines before it shifts terms to them, so that a term that goes on
// is led throughout. It is called after each record, so no log was lost and won again in between:
// until a term is shifted, its former line proves no more than its new one.
func (s *shard) sync(in told.In, now clock.Instant) {
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
	s.vacate(d.Free, in, now)
}

// gain begins the terms of roles won with one token.
func (s *shard) gain(w leases.Won, now clock.Instant) {
	s.own.Gain(w, func(local int32) vacancy.Cause { return s.claims.CauseOf(local, s.set.Process) }, now)
	s.wanted = false
	s.main.Wins(now)
}

// lapsed returns why terms have lapsed.
func (s *shard) lapsed(now clock.Instant) term.Reason {
	if !s.set.Alive(now) {
		return term.NotPulsed
	}
	return term.Lapsed
}

// end ends the terms of roles that are no longer held.
func (s *shard) end(roles []int32, why term.Reason) {
	for _, local := range roles {
		s.handovers.Drop(local)
	}
	s.own.End(roles, why)
}

// shards are all shards of a process. Node.channels has the channels of all of them, by number of the log.
type shards []*shard

// of returns the shard with a log's roles.
func (parts shards) of(log int) *shard { return parts[log%len(parts)] }

// local returns a role's shard, and the role's number there.
func (parts shards) local(role int) (*shard, int32) {
	return parts[role%len(parts)], int32(role / len(parts))
}

// catchUp notes that the records that were in the log when reading began are read.
func (s *shard) catchUp(c *channel.Channel, in told.In, now clock.Instant) {
	if !c.CatchUp(now) {
		return
	}
	s.vacancyStats.Follow(s.Count(s.desired.Roles), now) // vacant roles count from now on
	switch {
	case s.meets(c):
		s.out.Startup.Anew(now)
		if !c.Link.Greeting() {
			c.Hello(nil, in.Takes, now)
		}
		s.out.Startup.Await(now) // then all vacant roles are reconsidered
	case s.claims.IsPostponed() && s.logs.CaughtUp():
		s.reconsiderVacant(in, now)
	}
	if c.Announcements.WentBack() {
		c.OfferSnapshot(1, uint64(c.Index), in.Takes, now) // others look for one too
	}
}

// meets reports whether this process waits for others once it has read the history. The wait for others
// that start began with its first Hello. If reading the history took longer than that, their Hellos lie
// behind the history, and are read by the time a new own Hello comes back. Reading from farther back
// is no reason to wait: the records behind the history are known by then.
func (s *shard) meets(c *channel.Channel) bool {
	return c.History >= vacancy.StartupWait(s.set.T) && !c.Announcements.WentBack() && !s.set.Nominated && !s.set.Observer && !s.desired.Closing
}

// greet says Hello when greetDue says so.
func (s *shard) greet(c *channel.Channel, in told.In, now clock.Instant) {
	if s.set.Observer || s.desired.Closing {
		return
	}
	if at, ok := s.greetDue(c, now); !ok || now.Mono < at {
		return
	}
	if s.claims.LookAgain(now) {
		s.noticeSilent(in, now)
	}
	if at, ok := s.greetDue(c, now); ok && now.Mono >= at {
		c.Probe(in.Takes, now)
	}
}

func (s *shard) greetDue(c *channel.Channel, now clock.Instant) (at clock.Mono, ok bool) {
	known, freeAt, probed := c.Log.Known(), now.MonoOf(c.Log.FreshAt()), clock.Mono(0)
	if known {
		freeAt = now.MonoOf(s.claims.NextSilent())
	}
	if c.Link.Probing(now, s.set.T) {
		probed = c.Link.ProbeLostAt(s.set.T)
	}
	return c.Announcements.GreetDue(announce.Greeting{Known: known, Read: c.IsRead(), Spare: s.Count(s.desired.Roles) == 0,
		FreeAt: freeAt, Probed: probed, T: s.set.T, HeartbeatInterval: s.set.HeartbeatInterval,
		Unsure: func() bool {
			works := c.Link.Check(now, s.set.T)
			return !works && s.willing(now)
		}})
}

// talkDue reports when this process next has something to say in the log.
func (s *shard) talkDue(c *channel.Channel, in told.In, mono func(clock.Mono), now clock.Instant) {
	mono(c.Announcements.Due(s.set.T))
	mono(c.LookBackAt(in.Takes, now))
	if s.set.Observer || s.desired.Closing {
		return
	}
	if at, ok := s.greetDue(c, now); ok {
		mono(at)
	}
}

// pong answers a Ping in the same log. The Node puts in what the process says of itself.
func (s *shard) pong(c *channel.Channel, o int64, r *lease.Record, now clock.Instant) {
	if s.set.Nominated || s.set.Observer || s.desired.Closing || !s.willing(now) {
		return
	}
	answer := c.Word(lease.Pong, now)
	answer.To, answer.Ping = r.Session.Process, o
	c.Append(now, answer)
}

// follow acts on what a record did to the lease.
func (s *shard) follow(c *channel.Channel, ev lease.Event, anew bool, r *lease.Record, in told.In, now clock.Instant) {
	if ev.Known {
		s.learned(anew, now)
	}
	if ev.Evidence {
		if id := s.traits.As(r.Session); s.claims.Revived(id) { // others were told that its roles are vacant
			in.Plans.Revive(id.Process, s.traits.Together, now)
			roles := s.HeldBy(map[lease.Session]bool{id: true})
			s.watch(roles)
			s.vacancyStats.RecountOf(roles, s.Count(s.desired.Roles), true, now)
		}
		s.Heard(r.Session, c.IsNew(c.Log.Offset()))
	}
	s.outlived(c, ev.Outlived, r, in, now)
	if len(ev.Changed) > 0 {
		s.watch(ev.Changed)
		s.vacancyStats.RecountOf(ev.Changed, s.Count(s.desired.Roles), false, now)
		s.claims.Designate(ev.Changed, r, s.set.Process)
	}
	s.sync(in, now)
	if anew {
		s.reconsiderVacant(in, now)
	}
}

// watch looks for the silence of the holder when its lease ends. All held roles have the same holder.
func (s *shard) watch(roles []int32) {
	if len(roles) == 0 {
		return
	}
	if g, held := s.leases.Holder(roles[0]); held {
		s.claims.Given(g.FreeAt)
	}
}

// outlived handles holders that another process has found to be silent before this process did:
// their roles have changed hands, so this process would not find out by itself.
func (s *shard) outlived(c *channel.Channel, ids []lease.Session, r *lease.Record, in told.In, now clock.Instant) {
	for _, id := range ids {
		if id.Process != r.Session.Process { // else it claims its own roles again
			s.suspect(c, id.Process, now.Add(-s.set.T), in, now)
		}
	}
}

// suspect takes a holder whose lease is over for dead, unless there is another explanation: the log has
// stood still since the holder was last heard, or the holder was heard in another log, so it has lost
// touch with some logs, or they have stopped.
func (s *shard) suspect(c *channel.Channel, process string, heard clock.Instant, in told.In, now clock.Instant) {
	switch {
	case c.Link.Doubtful(heard):
	case len(s.logs) > 1 && s.members.HeardSince(process, now.Add(-clock.Recent(s.set.T))):
	default:
		in.Plans.Suspect(process)
	}
}

// learned reconsiders everything after the fold has become known.
func (s *shard) learned(anew bool, now clock.Instant) {
	s.vacancyStats.Recount(s.Count(s.desired.Roles), now)
	if !anew {
		return
	}
	s.claims.Init()
	for h := range s.leases.Holders() {
		s.joined = s.joined || h.Session.Process != s.set.Process
	}
	s.main.Pacing.Think(0)
	s.main.Announcements.MayGoBackAgain()
	s.Standings.Learned()
}

// placed returns the state on which the next look for roles to hand over depends.
func (parts shards) placed(told uint64) balance.Placed {
	holders, calledOff := uint64(0), uint64(0)
	for _, s := range parts {
		holders += s.leases.Turns()
		calledOff += s.handovers.CallOffs()
	}
	return balance.Placed{Holders: holders, CalledOff: calledOff, Told: told}
}

// allBehind reports whether this process is behind in all logs.
func (parts shards) allBehind(now clock.Instant, t time.Duration) bool {
	return !slices.ContainsFunc(parts, func(s *shard) bool { return !s.main.Link.Behind(now, t) })
}

// anyTenured reports whether a role may be moved later, but not yet.
func (parts shards) anyTenured(now clock.Instant) bool {
	return slices.ContainsFunc(parts, func(s *shard) bool { return s.own.AnyTenured(now) })
}

// silentHolders returns the holders from which nothing was read for half of their lease although
// the log works: they are probably dead.
func (parts shards) silentHolders(now clock.Instant) map[string]bool {
	var silent map[string]bool
	for _, s := range parts {
		if s.main.Link.IsStalled() {
			continue
		}
		for h := range s.leases.Holders() {
			whole := h.FreeAt.Sub(h.Heard.Raw)
			if now.Raw.Sub(h.Heard.Raw) > whole/2 && !s.main.Link.Doubtful(h.Heard) {
				if silent == nil {
					silent = map[string]bool{}
				}
				silent[h.Session.Process] = true
			}
		}
	}
	return silent
}

// unheard returns the partitions that this process was nominated for and cannot reach.
func (parts shards) unheard(t time.Duration, now clock.Instant) (lost []int) {
	for _, s := range parts {
		if s.nomination.Unheard(t, now) {
			lost = append(lost, s.Index)
		}
	}
	return lost
}

// giveBackUntold gives back the roles of which the application was not told, if it is too busy to be
// told soon: nobody would work for them, and nobody else could lead them. It looks at all held roles,
// so it does that at most once in lookEvery.
func (s *shard) giveBackUntold(now clock.Instant) {
	if now.Mono < s.untoldAt || !s.set.IsDeaf(now) {
		return
	}
	s.untoldAt = now.Mono.Add(lookEvery)
	var untold []int32
	for local := range s.own.From(0) {
		if len(untold) == handover.StepRoles {
			break
		}
		if !s.terms.Told(s.Role(local)) {
			untold = append(untold, local)
		}
	}
	s.giveBack(untold, nil, term.NotPulsed, now)
}
