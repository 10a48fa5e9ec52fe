package elector

import (
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

// A role that another holder has released in favour of a newcomer counts as the newcomer's before it
// has claimed the role. Otherwise the newcomer would be given too much.
func TestInFlightRolesCountAgainstCapacity(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 4, stays)
	w.pass(8 * time.Second)
	w.start("b", 4, stays)
	w.pass(8 * time.Second)
	require.Equal(t, []int{0, 1, 2, 3}, a.leads(4))
	a.do(func(now clock.Instant) {
		s := a.shards[0]
		s.claims.Designate([]int32{5}, &lease.Record{Kind: lease.Release, To: "b"}, "a") // of a role that only others know
		plan, me := a.Plan(false, now)
		b := int32(plan.Find("b"))
		require.Equal(t, []int32{int32(me), int32(me), int32(me), int32(me)}, a.expected(plan, now))

		a.Node.desired.Roles = 6
		require.Equal(t, int32(placement.Nobody), a.Holders(plan, now)[5])
		require.Equal(t, []int32{int32(placement.Nobody), b}, a.expected(plan, now)[4:])

		s.claims.Designate([]int32{4}, &lease.Record{Kind: lease.Release, To: "gone"}, "a")
		require.Equal(t, int32(placement.Nobody), a.expected(plan, now)[4], "who is not there gets nothing")
		a.Node.desired.Roles = 4
	})
}

// A log that begins again knows no roles, so R alone limits the plan. A handover may have a role beyond R,
// because SetRoles lowered R in the middle of it. The plan ignores that role.
func TestHandoverBeyondRIsIgnored(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 4, stays)
	w.pass(8 * time.Second)
	w.start("b", 4, stays)
	w.pass(8 * time.Second)
	a.do(func(now clock.Instant) {
		s := a.shards[0]
		s.handovers.Begin(handover.NewHandover(term.Transferred, now, "b", true), 3, 9)
		plan, me := a.Plan(false, now)
		b := int32(plan.Find("b"))
		require.Equal(t, []int32{int32(me), int32(me), int32(me), b}, a.Holders(plan, now))
	})
}

// While a member of an older version is there, no caps count: it would hand roles over to a capped member, which
// would pass them on. Once it has gone, the caps count.
func TestCapsDoNotCountBesideAnOlderVersion(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 12, func(s *Settings) { s.MaxRoles = 2 })
	w.start("b", 12, nil)
	c := w.start("c", 12, nil)
	c.older = true
	w.pass(time.Minute)
	require.Len(t, a.leads(12), 4)
	require.Len(t, c.leads(12), 4)
	told := len(w.logs[0])
	w.pass(5 * time.Minute)
	for _, r := range w.logs[0][told:] {
		require.NotEqual(t, lease.Claim, r.Kind, "roles go to and fro")
	}
	const line = "this process leads more roles than Config.MaxRoles, as others have none to spare"
	require.Equal(t, 1, a.noted(line))
	c.desired.Closing = true
	c.want(c.desired)
	w.pass(40 * time.Second)
	require.Len(t, a.leads(12), 2)
	require.Equal(t, 1, a.noted(line))
	w.start("d", 12, func(s *Settings) { s.MaxRoles = 1 })
	w.pass(40 * time.Second)
	require.Len(t, w.actors[3].leads(12), 1)
	require.Len(t, w.actors[1].leads(12), 9)
}

// Members share roles out by weight: at a start, for balance, and when one closes.
func TestMembersAreLevelByWeight(t *testing.T) {
	w := newWorld(1)
	w.weights = placement.NewWeights([]int32{8, 1, 1, 1, 1, 1, 1, 2})
	a := w.start("a", 8, nil)
	w.pass(20 * time.Second)
	b := w.start("b", 8, nil)
	w.pass(30 * time.Second)
	require.Equal(t, []int{0}, b.leads(8), "half of the weight")
	require.Len(t, a.leads(8), 7)
	c := w.start("c", 8, nil)
	w.pass(time.Minute)
	require.Equal(t, []int{0}, b.leads(8), "it is alone with the heavy role")
	require.InDelta(t, 3.5, len(c.leads(8)), 1.5)
	told := len(w.logs[0])
	w.pass(2 * time.Minute)
	for _, r := range w.logs[0][told:] {
		require.NotEqual(t, lease.Claim, r.Kind, "roles go to and fro")
	}
	b.desired.Closing = true
	b.want(b.desired)
	w.pass(5 * time.Second)
	require.Len(t, append(a.leads(8), c.leads(8)...), 8)
	w.pass(time.Minute)
	alone := slices.ContainsFunc([]*actor{a, c}, func(x *actor) bool { return slices.Equal(x.leads(8), []int{0}) })
	require.True(t, alone, "the others weigh as much together")
}

// A member that answers and never claims costs few terms: it is offered one role at a time, more and
// more rarely. Once it has claimed one, it gets the rest of its share.
func TestAMemberThatDoesNotClaimCostsFewTerms(t *testing.T) {
	w := newWorld(1)
	w.mute = true
	a := w.start("a", 8, nil)
	w.pass(8 * time.Second)
	deaf := true
	w.drop = func(r *lease.Record) bool { return deaf && r.Kind == lease.Claim && r.Session.Process == "b" }
	b := w.start("b", 8, nil)
	w.pass(2 * time.Hour)
	moved := func() (roles []int) {
		for _, r := range w.sent(0, "a", lease.Release) {
			if r.Moved {
				n := 0
				for _, g := range r.Ended {
					n += len(g.Roles)
				}
				roles = append(roles, n)
			}
		}
		return roles
	}
	vain := moved()
	require.Equal(t, []int{4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, vain, "roles handed over in vain")
	require.Len(t, a.leads(8), 8)
	deaf = false
	w.pass(time.Hour + 30*time.Second)
	require.Len(t, b.leads(8), 4)
	require.Equal(t, []int{1, 3}, moved()[len(vain):], "the rest at once")
}

// A process whose reader is replaced during a handover reads records of an earlier term of the addressee
// again. It does not take that term for the outcome.
func TestRereadTermIsNoHandoverOutcome(t *testing.T) {
	for name, logs := range map[string]int{"one log": 1, "one log read slowly": 1, "small logs": 3} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(logs)
			set := func(s *Settings) { stays(s); s.Majority = logs > 1 }
			b := w.start("b", 1, set)
			w.pass(8 * time.Second)
			a := w.start("a", 1, set)
			w.pass(8 * time.Second)
			require.Equal(t, []int{0}, b.leads(1))
			old := int64(len(w.logs[0]))
			b.do(func(now clock.Instant) {
				for _, c := range b.channels {
					old = min(old, int64(len(w.logs[c.Index])))
					c.Append(now, c.Snapshot(now)...)
				}
			})
			w.pass(time.Second)
			transfer := func(from *actor, to string) {
				from.do(func(now clock.Instant) { _, err := from.Transfer(0, to, now); require.NoError(t, err) })
			}
			transfer(b, "a")
			w.pass(time.Second)
			require.Equal(t, []int{0}, a.leads(1))
			w.drop = func(r *lease.Record) bool { return r.Kind == lease.Claim && r.Session.Process == "b" }
			a.work = time.Second
			transfer(a, "b")
			w.pass(100 * time.Millisecond)
			pause := time.Duration(0)
			if name == "one log read slowly" {
				pause = a.set.T // after which no process waits for the end of the history
			}
			a.readAgain(t, old, pause)
			w.pass(time.Minute)
			require.Len(t, a.ends, 1)
			require.Error(t, a.ends[0].Err, "b has not claimed")
		})
	}
}

// readAgain gives a process a new reader for each log, which begins at an offset. No handover may end
// before everything is read.
func (a *actor) readAgain(t *testing.T, from int64, pause time.Duration) {
	a.do(func(now clock.Instant) {
		for p, records := range a.w.logs {
			a.Read(Entry{Partition: p, Reset: true, Offset: from, End: int64(len(records))}, nil, nil, now)
		}
	})
	a.deaf = true
	a.w.pass(pause)
	a.deaf = false
	for o, end := from, int64(len(a.w.logs[0])); o < end; o++ {
		for p, records := range a.w.logs {
			if o < int64(len(records)) {
				a.read(p, o)
			}
			require.Empty(t, a.ends, "the outcome after record %d of %d in log %d", o, end, p)
		}
	}
}
