package elector

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/outside"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/elector/warm"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// announce says Hello if it is time, in the log that is this process's home, or in another
// one if that cannot be reached.
func (n *Node) announce(now clock.Instant) {
	a := &n.announcer
	if n.set.Observer || a.Over() {
		return
	}
	if n.desired.Closing {
		a.SayBye(now)
	}
	wants, changed := a.Admit(n.wants(now))
	if changed && !n.set.Nominated {
		a.Soon(n.members.Size(), now)
	}
	if now.Mono < n.announceDue(now) {
		return
	}
	a.Said(wants, n.members.Size(), now)
	n.do(now, func(in told.In, now clock.Instant) {
		n.channels.Reachable(n.announcer.HomeLog()).Hello(n.announcement(wants), in.Takes, now)
	})
}

// announceDue is the earliest time of the next Hello. It waits up to T for a Hello in flight
// on the same log, except for the goodbye.
func (n *Node) announceDue(now clock.Instant) clock.Mono {
	at, c := n.announcer.Due(), n.channels.Reachable(n.announcer.HomeLog())
	if !c.Addressable() {
		return clock.Never
	}
	if c.Link.Probing(now, n.set.T) && !n.desired.Closing {
		at = max(at, c.Link.ProbeLostAt(n.set.T))
	}
	return at
}

var errOwnRole = errors.New("this process holds the role itself: call Transfer or StepDown")

// Ask sends a request to the holder of the role, and returns the number of its Outcome. The error
// is ErrUnknown, ErrVacant or ErrLeadsAlready, or says what is wrong with the request.
func (n *Node) Ask(r request.Request, now clock.Instant) (id int, err error) {
	if len(n.shards) == 0 {
		return 0, request.ErrUnknown
	}
	s, local := n.shards.local(r.Role)
	switch token, g := s.Standing(local, now); {
	case token == observe.UnknownToken:
		return 0, request.ErrUnknown
	case token == observe.VacantToken:
		return 0, request.ErrVacant
	case g.Session.Process == n.set.Process:
		return 0, errOwnRole
	case r.Verb == lease.Transfer && n.members.Means(r.To, roster.Self{Process: g.Session.Process, Name: g.Name}, now):
		return 0, balance.ErrLeadsAlready
	default:
		return n.requests.Ask(r, g.Session.Process, n.route, now)
	}
}

// Call asks all members to announce themselves, and returns the number of its Outcome.
func (n *Node) Call(now clock.Instant) (id int, err error) {
	if len(n.shards) == 0 {
		return 0, request.ErrUnknown
	}
	return n.requests.Call(n.route, now)
}

// Accept notes that the application accepts a request, and reports whether it may be carried out.
func (n *Node) Accept(r request.Request) bool {
	s, local := n.shards.local(r.Role)
	return n.requests.Accept(r, s.own.TokenOf(local))
}

// route chooses the log for a letter: the only log with the role or, if several will do, one after the other.
func (n *Node) route(role, tries int) int {
	logs := n.channels
	if role != request.AnyRole {
		s, _ := n.shards.local(role)
		logs = s.logs
	}
	return logs[(n.channels.Reachable(n.announcer.HomeLog()).Index+tries)%len(logs)].Index
}

// correspond sends the letters of requests and reports their outcomes, and sends offers and states. It cannot
// answer a Ping that it has yet to read again; the sender will repeat it.
func (n *Node) correspond(now clock.Instant) {
	letters, ended := n.requests.Take()
	n.ready.ended(ended)
	prepared := n.warm.Letters(warm.WillOf(n.set, n.desired, now), n.desired.Roles, func(i int) warm.Shard { return n.shards[i].offering(now) }, now)
	for _, l := range append(letters, prepared...) {
		c := n.channels[l.Log]
		if !c.Begun() || l.Kind == lease.Pong && c.Log.Offset() < l.Ping {
			continue
		}
		r := c.Word(l.Kind, now)
		r.To, r.Ping, r.Request, r.Answer, r.Offer, r.Prepared = l.To, l.Ping, l.Request, l.Answer, l.Offer, l.Prepared
		if l.Kind == lease.Pong {
			r.Hello = n.announcement(n.wants(now))
		}
		n.do(now, func(told.In, clock.Instant) { c.Append(now, r) })
	}
}

// Nominate takes the nominator's decision: the partitions on which this process may claim roles.
func (n *Node) Nominate(partitions []int, lost bool, now clock.Instant) {
	named := make([]bool, len(n.shards))
	for _, i := range partitions {
		if i >= 0 && i < len(named) {
			named[i] = true
		}
	}
	for i, s := range n.shards {
		if s.nomination.Nominate(named[i], lost, s.own.Len() > 0, now) {
			s.wanted = false
			if named[i] {
				n.do(now, s.reconsiderVacant)
			}
		}
	}
	n.announcer.SayNow(now)
	n.Tick(now)
}

// joins reports whether this process takes part in the group: only while it could lead, and not if it
// cannot reach its partitions. It makes room for others if its application hangs, or cannot be told of a
// new term. In the latter case a leader stays, since it would lose its roles if it left the group.
func (n *Node) joins(now clock.Instant) bool {
	if !n.set.Nominated || n.set.Observer || !n.desired.Willing(now) || !n.set.Alive(now) {
		return false
	}
	away, lost := n.attendance.Away(func() []int { return n.shards.unheard(n.set.T, now) }, now)
	if len(lost) > 0 {
		n.ready.note(slog.LevelWarn, "cannot reach partitions of the leader topic: leaving the group to make room for others",
			"partitions", lost, "for", n.attendance.Lasts())
	}
	if away {
		return false
	}
	_, leads := n.terms.LeadsAny(n.desired.Roles)
	return leads || !n.set.IsDeaf(now)
}

// verify gives up Claims that do not come back, and then asks whether the log is still the same. It
// also asks, at most once in W(T), if own records are expected and none has come back for that long.
func (n *Node) verify(now clock.Instant) {
	busy := false
	for _, s := range n.shards {
		busy = busy || s.own.Len() > 0 || s.logs.Claiming()
		n.do(now, func(in told.In, now clock.Instant) {
			if after := s.giveUpClaims(in, now); after > 0 {
				n.ready.verify()
				n.ready.tell(n.reports.GivenUp(s.Index, after, now))
			}
		})
	}
	if !busy {
		n.trip.Idle(now)
		return
	}
	if n.timing.Asks(n.trip.SilentFor(now), clock.Wait(n.set.T, n.set.Rho), now) {
		n.ready.verify()
	}
}

// finish reports that a closing process has nothing more to wait for. If its Releases leave no
// holder, it writes a Snapshot, so that the next process knows that at once. Before that,
// successors have a moment to claim, since a Snapshot would only delay their Claims.
func (n *Node) finish(now clock.Instant) {
	if !n.desired.Closing {
		return
	}
	claiming, owing := false, false
	for _, s := range n.shards {
		if s.own.Len() > 0 {
			return
		}
		claiming = claiming || s.logs.Claiming()
		owing = owing || s.leases.Owing(now)
	}
	n.closing.Free(now)
	promised := false
	for _, c := range n.channels {
		switch {
		case !c.Announcements.OwesFarewell() || !c.Log.Known() || !c.Log.Vacant():
		case now.Mono < n.closing.SucceedBy(vacancy.HeadStart(2*n.trip.Takes())) && n.shards.of(c.Index).claims.Promised(n.members.Takes):
			promised = true
		default:
			c.Announcements.LeaveFarewell()
			n.do(now, func(told.In, clock.Instant) { c.Append(now, c.Snapshot(now)...) })
		}
	}
	waited := n.closing.Waited(owing && now.Age(n.counts.Read) < handover.CloseTail/4, now)
	if len(n.ready.Append) == 0 && !promised && (!claiming && !owing && n.closing.NothingSent() || waited) {
		n.ready.Finished = true
	}
}

// Busy reports whether this process holds, claims or releases anything. What it has released counts
// for CloseTail at most.
func (n *Node) Busy(now clock.Instant) bool {
	for _, s := range n.shards {
		if s.own.Len() > 0 || s.logs.Claiming() {
			return true
		}
	}
	return n.closing.Busy(now)
}

// sayWaiting logs once, soon after the start, why this process leads nothing yet: it waits for leases
// that it may not know of, or others lead all roles.
func (n *Node) sayWaiting(now clock.Instant) {
	t := &n.timing
	if t.HasLooked() || n.set.Observer || t.OpenFor(now) < min(clock.SayWaiting(n.set.T), lookEvery/2) {
		return
	}
	longest, why := time.Duration(0), ""
	for _, c := range n.channels {
		if !c.Begun() {
			return
		}
		if at := c.Log.FreshAt(); at != clock.Never && n.shards.of(c.Index).Count(n.desired.Roles) > 0 {
			if left := at.Sub(now.Raw); left > longest {
				longest = left
				if proven, reason := n.origins.Proven(c.Index); proven {
					why = "no record of this process has come back yet"
				} else {
					why = cmp.Or(reason, "the log does not prove that nobody leads")
				}
			}
		}
	}
	t.Looked()
	switch others := n.members.Present(); {
	case longest > 0:
		n.ready.note(slog.LevelInfo, "waiting for the leases of others", "at_most", longest.Round(100*time.Millisecond), "why", why)
	case n.set.Rebalance && !n.set.Nominated && outside.Able(n.set, n.desired, now) && 0 < others && others < n.desired.Roles && !n.Busy(now):
		n.ready.note(slog.LevelInfo, "waiting for a share of the roles", "after", roster.SteadyAfter,
			"why", "all roles have leaders, who hand some over to a member once it has been there for that long")
	}
}

// End ends all terms: the log has failed permanently, or this process has closed. Nothing is read from
// now on, so nobody knows for how long roles that are vacant now stay vacant: they do not count.
func (n *Node) End(why term.Reason) {
	for _, s := range n.shards {
		s.end(s.own.Roles(), why)
		s.vacancyStats.End()
	}
}

// Drained notes that the application has finished the work of the terms with this token on these
// units, which it was told to give up.
func (n *Node) Drained(units []int, token int64, now clock.Instant) {
	var done []int
	for _, unit := range units {
		s, local := n.shards.local(unit)
		if h := s.handovers.Of(local); h != nil && h.IsAsked() && s.own.TokenOf(local) == token {
			h.Finish(local, now.Mono)
			done = append(done, unit)
			s.dueAt = min(s.dueAt, h.ReleaseAt(n.trip.Takes()))
		}
	}
	n.terms.Done(done)
	for _, s := range n.shards {
		if now.Mono >= s.dueAt && len(s.handovers.InProgress()) > 0 {
			n.step(s, now)
		}
	}
}
