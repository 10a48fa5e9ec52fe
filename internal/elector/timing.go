package elector

import (
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/vacancy"
)

// timing is when a Node has last looked at some things.
type timing struct {
	asked  clock.Instant // when the log was last verified
	due    clock.Mono    // when Tick is due
	opened clock.Mono    // when the logs were opened
	waits  bool          // it was checked whether this process waits for leases of others
}

// late reports whether a step is late. A process that was suspended may not know yet that its
// session is over and others have its partitions: for a while it must not announce what it wants.
func (t *timing) late(now clock.Instant) bool {
	return t.due != 0 && now.Mono.Sub(t.due) > time.Second
}

// open notes that the logs were opened.
func (t *timing) open(now clock.Instant) { t.opened = now.Mono }

// next notes when Tick is due.
func (t *timing) next(at clock.Mono) { t.due = at }

// asks reports whether the log is to be verified, since nothing has come back for a while, and notes that it is.
func (t *timing) asks(silent, wait time.Duration, now clock.Instant) bool {
	if silent < wait || now.Mono.Sub(t.asked.Mono) < wait {
		return false
	}
	t.asked = now
	return true
}

// looked notes that it was checked for which leases this process waits.
func (t *timing) looked() { t.waits = true }

// verify asks, at most once in T′, whether the log is still the same, if own records are expected
// and none has come back for that long.
func (n *Node) verify(now clock.Instant) {
	busy := false
	for _, s := range n.shards {
		busy = busy || s.own.Len() > 0 || s.logs.claiming()
		n.do(now, func(in *In) {
			if after := s.giveUpClaims(in); after > 0 {
				n.ready.verify()
				n.ready.tell(n.reports.GivenUp(s.Index, after, now))
			}
		})
	}
	if !busy {
		n.trip.Idle(now)
		return
	}
	if n.timing.asks(n.trip.SilentFor(now), clock.Wait(n.set.T, n.set.Rho), now) {
		n.ready.verify()
	}
}

// finish reports that a closing process has nothing more to wait for. If it leaves no holder
// behind, it leaves a Snapshot, so that the next process knows that at once. Before that,
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
		claiming = claiming || s.logs.claiming()
		owing = owing || s.leases.Owing(now)
	}
	n.closing.Free(now)
	promised := false
	for _, c := range n.channels {
		switch {
		case !c.announcements.OwesFarewell() || !c.log.Known() || !c.log.Vacant():
		case now.Mono < n.closing.SucceedBy(vacancy.HeadStart(2*n.trip.Takes())) && n.shards.of(c.index).claims.Promised(n.members.Takes):
			promised = true
		default:
			c.announcements.LeaveFarewell()
			n.do(now, func(in *In) { c.append(in, c.snapshot(now)...) })
		}
	}
	waited := n.closing.Waited(owing && now.Age(n.counts.Read) < handover.CloseTail/4, now)
	if len(n.ready.Append) == 0 && !promised && (!claiming && !owing && n.closing.NothingSent() || waited) {
		n.ready.Finished = true
	}
}

// Busy reports whether this process holds, claims or releases anything. It ends closeTail after
// the last release.
func (n *Node) Busy(now clock.Instant) bool {
	for _, s := range n.shards {
		if s.own.Len() > 0 || s.logs.claiming() {
			return true
		}
	}
	return n.closing.Busy(now)
}

// sayWaiting logs once, soon after the start, for how long this process claims nothing because of
// leases that it may not know of, or that others lead all roles so far.
func (n *Node) sayWaiting(now clock.Instant) {
	t := &n.timing
	if t.waits || n.set.Observer || now.Mono.Sub(t.opened) < min(clock.SayWaiting(n.set.T), lookEvery/2) {
		return
	}
	longest, why := time.Duration(0), ""
	for _, c := range n.channels {
		if !c.begun {
			return
		}
		if at := c.log.FreshAt(); at != clock.Never && n.shards.of(c.index).Count(n.desired.Roles) > 0 {
			if left := at.Sub(now.Raw); left > longest {
				longest = left
				_, why = n.origins.Proven(c.index)
			}
		}
	}
	t.looked()
	switch others := n.members.Present(); {
	case longest > 0:
		n.ready.note(slog.LevelInfo, "waiting for the leases of others", "at_most", longest.Round(100*time.Millisecond), "why", why)
	case n.set.Rebalance && !n.set.Nominated && able(n.set, n.desired, now) && 0 < others && others < n.desired.Roles && !n.Busy(now):
		n.ready.note(slog.LevelInfo, "waiting for a share of the roles", "after", roster.SteadyAfter,
			"why", "all roles have leaders, who hand some over to a member once it has been there for that long")
	}
}
