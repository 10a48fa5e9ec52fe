package elector

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/prepare"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/lease"
)

// workshop is an application that prepares roles.
type workshop struct {
	takes time.Duration
	fails func(role int) bool
	open  map[uint64]bool // contexts that have not ended
	ready map[int]bool    // roles that are prepared
	warm  []int           // roles that were prepared when this process came to lead them
	cold  []int           // roles that were still being prepared then
	busy  int
	most  int // the largest number of calls at once
	begun int
	ended map[prepare.Why]int
}

func (k *workshop) does(a *actor, r Ready) {
	for _, e := range r.Prepare.End {
		role := a.shards[e.Shard].Role(e.Local)
		delete(k.open, e.Call)
		k.ended[e.Why]++
		switch {
		case e.Why == prepare.Led && k.ready[role]:
			k.warm = append(k.warm, role)
		case e.Why == prepare.Led:
			k.cold = append(k.cold, role)
		}
		delete(k.ready, role)
	}
	for _, b := range r.Prepare.Begin {
		role := a.shards[b.Shard].Role(b.Local)
		k.open[b.Call] = true
		k.begun++
		k.busy++
		k.most = max(k.most, k.busy)
		a.w.after(k.takes, func() {
			k.busy--
			ok := k.open[b.Call] && (k.fails == nil || !k.fails(role))
			if ok {
				k.ready[role] = true
			}
			a.do(func(now clock.Instant) { a.warm.Returned(b, ok, now) })
		})
	}
}

// warmWorld is a world in which a leads all roles, and others prepare them, at most two at once.
func warmWorld(t *testing.T, roles int, change func(*Settings), names ...string) (w *world, a *actor, shops map[string]*workshop) {
	t.Helper()
	return warmed(t, newWorld(1), roles, change, names...)
}

func warmed(t *testing.T, in *world, roles int, change func(*Settings), names ...string) (w *world, a *actor, shops map[string]*workshop) {
	t.Helper()
	w = in
	shops = map[string]*workshop{}
	w.stepped = func(a *actor, r Ready) {
		if k := shops[a.set.Name]; k != nil {
			k.does(a, r)
		}
	}
	a = w.start("a", roles, func(s *Settings) {
		stays(s)
		s.Majority = w.small
	})
	w.pass(8 * time.Second)
	for _, name := range names {
		shops[name] = &workshop{takes: 300 * time.Millisecond, open: map[uint64]bool{}, ready: map[int]bool{}, ended: map[prepare.Why]int{}}
		w.start(name, roles, func(s *Settings) {
			stays(s)
			s.Majority = w.small
			s.Prepares = &lease.Prepares{Most: 2, For: 3 * time.Second}
			if change != nil {
				change(s)
			}
		})
	}
	w.pass(8 * time.Second)
	require.Len(t, a.leads(roles), roles)
	w.take()
	return w, a, shops
}

func (a *actor) transfers(t *testing.T, role int, to string) (id int) {
	t.Helper()
	a.do(func(now clock.Instant) {
		var err error
		id, err = a.Transfer(role, to, now)
		require.NoError(t, err)
	})
	return id
}

func TestTransferArrivesWarm(t *testing.T) {
	w, a, shops := warmWorld(t, 3, nil, "b")
	id := a.transfers(t, 1, "b")
	w.pass(250 * time.Millisecond)
	require.Equal(t, []int{0, 1, 2}, a.leads(3), "a leads while b prepares")
	w.pass(200 * time.Millisecond)
	require.Equal(t, []int{1}, shops["b"].warm)
	require.Equal(t, []int{1}, w.actor("b").leads(3))
	require.Equal(t, []request.Outcome{{ID: id}}, a.ends)
	w.pass(20 * time.Second)
	require.Empty(t, shops["b"].open)
	require.Empty(t, a.warm.Offers.Named("b", 0))
	require.Equal(t, 1, shops["b"].begun)
}

func TestTransferToAMemberThatFails(t *testing.T) {
	w, a, shops := warmWorld(t, 3, nil, "b")
	shops["b"].fails = func(int) bool { return true }
	id := a.transfers(t, 1, "b")
	w.pass(time.Second)
	require.Equal(t, []request.Outcome{{ID: id, Err: request.ErrNoAnswer}}, a.ends)
	require.Equal(t, []int{0, 1, 2}, a.leads(3))
	require.Equal(t, map[prepare.Why]int{prepare.Failed: 1}, shops["b"].ended)
	w.pass(20 * time.Second)
	require.Equal(t, 1, shops["b"].begun, "it is not offered again")
}

func TestTransferThatTakesTooLongIsCalledOff(t *testing.T) {
	w, a, shops := warmWorld(t, 3, nil, "b")
	shops["b"].takes = time.Minute
	a.transfers(t, 1, "b")
	w.pass(2900 * time.Millisecond)
	require.Empty(t, a.ends)
	w.pass(300 * time.Millisecond)
	require.Len(t, a.ends, 1)
	require.Equal(t, map[prepare.Why]int{prepare.Late: 1}, shops["b"].ended)
	require.Equal(t, []int{0, 1, 2}, a.leads(3))
}

func TestClosingProcessGivesItsRolesWarm(t *testing.T) {
	w, a, shops := warmWorld(t, 12, nil, "b", "c")
	a.want(Desired{Roles: 12, Closing: true, Contend: true})
	w.pass(500 * time.Millisecond)
	require.NotEmpty(t, w.actor("b").leads(12), "what is ready does not wait")
	w.pass(4 * time.Second)
	require.True(t, a.dead, "it has finished")
	b, c := shops["b"], shops["c"]
	require.Len(t, append(b.warm, c.warm...), 12)
	require.Empty(t, append(b.cold, c.cold...))
	require.Equal(t, 2, max(b.most, c.most), "two at once")
	require.Len(t, append(w.actor("b").leads(12), w.actor("c").leads(12)...), 12)
}

func TestRolesArriveWarmOverSeveralLogs(t *testing.T) {
	for name, small := range map[string]bool{"partitions": false, "small logs": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(3)
			w.small = small
			w, a, shops := warmed(t, w, 12, nil, "b", "c")
			a.transfers(t, 7, "c")
			w.pass(time.Second)
			require.Equal(t, []int{7}, shops["c"].warm)
			a.want(Desired{Roles: 12, Closing: true, Contend: true})
			w.pass(4 * time.Second)
			require.True(t, a.dead, "it has finished")
			b, c := shops["b"], shops["c"]
			require.Len(t, append(b.warm, c.warm...), 12)
			require.Empty(t, append(b.cold, c.cold...))
			require.Equal(t, 2, max(b.most, c.most), "two at once, of all logs together")
			w.pass(20 * time.Second)
			require.Empty(t, append(slices.Collect(maps.Keys(b.open)), slices.Collect(maps.Keys(c.open))...))
		})
	}
}

// Each role goes to the member that has prepared it already, as long as all get equally many.
func TestClosingProcessPrefersStandbys(t *testing.T) {
	w, a, shops := warmWorld(t, 60, func(s *Settings) { s.Prepares.Standby = true }, "b", "c", "d")
	w.pass(20 * time.Second)
	was := map[string]map[int]bool{}
	for name, k := range shops {
		was[name] = maps.Clone(k.ready)
	}
	a.want(Desired{Roles: 60, Closing: true, Contend: true})
	w.pass(5 * time.Second)
	require.True(t, a.dead, "it has finished")
	standing := 0
	for name, k := range shops {
		require.Len(t, w.actor(name).leads(60), 20, name)
		require.Empty(t, k.cold)
		for _, role := range k.warm {
			if was[name][role] {
				standing++
			}
		}
	}
	t.Log(standing)
	require.Greater(t, standing, 50, "a standby gets it")
}

// A member that joins gets roles that it has prepared already.
func TestBalancePrefersStandbys(t *testing.T) {
	w := newWorld(1)
	shops := map[string]*workshop{}
	w.stepped = func(a *actor, r Ready) {
		if k := shops[a.set.Name]; k != nil {
			k.does(a, r)
		}
	}
	a := w.start("a", 60, nil)
	w.pass(20 * time.Second)
	for _, name := range []string{"b", "c"} {
		shops[name] = &workshop{takes: 100 * time.Millisecond, open: map[uint64]bool{}, ready: map[int]bool{}, ended: map[prepare.Why]int{}}
		w.start(name, 60, func(s *Settings) {
			stays(s)
			s.Prepares = &lease.Prepares{Most: 4, For: 3 * time.Second, Standby: true}
		})
	}
	w.pass(14 * time.Second)
	require.Len(t, a.leads(60), 60)
	was := map[string]map[int]bool{}
	for name, k := range shops {
		was[name] = maps.Clone(k.ready)
	}
	w.pass(40 * time.Second)
	require.Len(t, a.leads(60), 20)
	for name, k := range shops {
		require.Len(t, k.warm, 20, name)
		for _, role := range k.warm {
			require.True(t, was[name][role], "%s stands by for role %d", name, role)
		}
	}
}

// The holder dies while it is still finishing roles that a member has prepared. The member claims them.
func TestMemberClaimsPreparedRoles(t *testing.T) {
	w, a, shops := warmWorld(t, 8, nil, "b", "c", "d", "e")
	a.work = time.Hour
	for role := range 8 {
		a.transfers(t, role, "b")
	}
	w.pass(2 * time.Second)
	require.Len(t, shops["b"].ready, 8)
	a.dead = true
	w.pass(8 * time.Second)
	claims := w.sent(0, "b", lease.Claim)
	require.Len(t, claims[len(claims)-1].Roles, 8, "and not only its share")
	require.NotEmpty(t, shops["b"].warm)
	require.Empty(t, shops["b"].ready)
}

func TestStandbysClaimPreparedRoles(t *testing.T) {
	w, a, shops := warmWorld(t, 40, func(s *Settings) { s.Prepares.Standby = true }, "b", "c", "d")
	w.pass(20 * time.Second)
	ready := 0
	for _, k := range shops {
		ready += len(k.ready)
	}
	require.Equal(t, 40, ready, "each role at one of them")
	a.dead = true
	w.pass(9 * time.Second)
	warm := 0
	for name, k := range shops {
		require.Empty(t, k.cold)
		require.Len(t, w.actor(name).leads(40), len(k.warm), "a standby has it")
		warm += len(k.warm)
	}
	require.Equal(t, 40, warm, "a standby has it")
	w.pass(20 * time.Second)
	for name, k := range shops {
		require.NotEmpty(t, k.ready, "%s stands by for others", name)
	}
}

// A Release by a sentinel names no successor. A standby that looks for its roles before its Claim is back keeps them.
func TestStandbysClaimPreparedRolesAfterARelease(t *testing.T) {
	for moment := range 5 {
		w, a, shops := warmWorld(t, 4, func(s *Settings) { s.Prepares.Standby = true }, "b", "c")
		w.pass(10*time.Second + time.Duration(moment)*100*time.Millisecond)
		w.lag = 100 * time.Millisecond
		a.dead = true
		b := w.actor("b")
		b.do(func(now clock.Instant) {
			g, held := b.channels[0].Log.Holder(0)
			require.True(t, held)
			for _, r := range b.channels[0].Log.ReleaseOf(g.Session, []int32{0, 1, 2, 3}, now) {
				w.append(b, Append{ID: w.id(0), Record: r})
			}
		})
		w.pass(3 * time.Second)
		warm := 0
		for name, k := range shops {
			require.Empty(t, k.cold, "%s, moment %d", name, moment)
			warm += len(k.warm)
		}
		require.Equal(t, 4, warm)
	}
}

// No role changes hands, so b must look again by itself for which roles it stands by.
func TestStandbyReturnsToItsRoles(t *testing.T) {
	for name, gone := range map[string]struct {
		want  Desired
		pause time.Duration
	}{
		"fewer roles":        {Desired{Roles: 3, Contend: true}, 2 * time.Second},
		"fewer for a moment": {Desired{Roles: 3, Contend: true}, 100 * time.Millisecond},
		"unhealthy":          {Desired{Roles: 8, Contend: true, Unhealthy: true}, 2 * time.Second},
		"and for a moment":   {Desired{Roles: 8, Contend: true, Unhealthy: true}, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, shops := warmWorld(t, 8, func(s *Settings) { s.Prepares.Standby = true }, "b")
			w.pass(5 * time.Second)
			require.Len(t, shops["b"].ready, 8)
			b := w.actor("b")
			b.want(gone.want)
			w.pass(gone.pause)
			require.Less(t, len(shops["b"].ready), 8)
			b.want(Desired{Roles: 8, Contend: true})
			w.pass(5 * time.Second)
			require.Len(t, shops["b"].ready, 8)
		})
	}
}

// Other decisions look at the standbys, too, perhaps before b does.
func TestStandbyNoticesStandbysSeenByOtherDecisions(t *testing.T) {
	w, a, shops := warmWorld(t, 40, func(s *Settings) { s.Prepares.Standby = true }, "b")
	w.pass(10 * time.Second)
	require.Len(t, shops["b"].ready, 40)
	b := w.actor("b")
	w.start("c", 40, func(s *Settings) {
		stays(s)
		s.Prepares = &lease.Prepares{Most: 2, For: 3 * time.Second, Standby: true}
	})
	for range 20 {
		w.pass(50 * time.Millisecond)
		b.warm.Sort(byrole.Numbering{Of: 1}, nil, nil)
	}
	w.pass(5 * time.Second)
	require.Len(t, a.leads(40), 40)
	require.Less(t, len(shops["b"].ready), 30, "c stands by for the others")
}

func TestClosingProcessDoesNotWaitForEver(t *testing.T) {
	w, a, shops := warmWorld(t, 4, func(s *Settings) { s.Prepares.For = time.Minute }, "b")
	shops["b"].takes = time.Hour
	a.want(Desired{Roles: 4, Closing: true, Contend: true})
	w.pass(4900 * time.Millisecond)
	require.Len(t, a.leads(4), 4, "half of DrainTimeout is for preparation")
	w.pass(time.Second)
	require.Len(t, w.actor("b").leads(4), 4)
	require.Len(t, shops["b"].cold, 2, "two were being prepared")
	require.Empty(t, shops["b"].open)
}

// Roles of a process that nobody drives any more are given up at once. They do not count as late.
func TestUndrivenProcessDoesNotWaitForPreparation(t *testing.T) {
	w, a, _ := warmWorld(t, 4, nil, "b")
	a.want(Desired{Roles: 4})
	w.pass(time.Second)
	require.Len(t, w.actor("b").leads(4), 4)
	require.Zero(t, a.warm.Offers.Counts.Late)
}

func TestPreparationAndDrainShareTheTime(t *testing.T) {
	w, a, shops := warmWorld(t, 4, func(s *Settings) { s.Prepares.For = time.Minute }, "b")
	shops["b"].takes, a.work = time.Hour, time.Hour
	a.want(Desired{Roles: 4, Closing: true, Contend: true})
	w.pass(9900 * time.Millisecond)
	require.Empty(t, w.actor("b").leads(4), "the application has half of DrainTimeout to finish")
	w.pass(200 * time.Millisecond)
	require.Len(t, w.actor("b").leads(4), 4, "DrainTimeout is for both")
}

func TestPreparationBeforeCloseTakesNoDrainTime(t *testing.T) {
	for _, before := range []time.Duration{100 * time.Millisecond, 6 * time.Second} {
		w, a, shops := warmWorld(t, 4, func(s *Settings) { s.Prepares.For = time.Minute }, "b")
		shops["b"].takes, a.work = time.Hour, time.Hour
		a.transfers(t, 1, "b")
		w.pass(before)
		a.want(Desired{Roles: 4, Closing: true, Contend: true})
		w.pass(4900 * time.Millisecond)
		require.False(t, a.shards[0].handovers.Of(1).IsAsked(), "half of DrainTimeout is for preparation")
		w.pass(5200 * time.Millisecond)
		require.Len(t, w.actor("b").leads(4), 4, "DrainTimeout is for both")
	}
}

func TestQueuedPreparationsFinishInTime(t *testing.T) {
	w, a, shops := warmWorld(t, 3, func(s *Settings) { s.Prepares = &lease.Prepares{Most: 1, For: time.Minute} }, "b")
	shops["b"].takes = 55 * time.Second
	first, second := a.transfers(t, 1, "b"), a.transfers(t, 2, "b")
	w.pass(2 * time.Minute)
	require.Equal(t, []request.Outcome{{ID: first}, {ID: second}}, a.ends)
}

func TestUnpreparedRolesGoToAnotherMember(t *testing.T) {
	w, a, shops := warmWorld(t, 8, nil, "b", "c")
	shops["b"].fails = func(int) bool { return true }
	a.want(Desired{Roles: 8, Closing: true, Contend: true})
	w.pass(5 * time.Second)
	require.True(t, a.dead, "it has finished")
	require.Len(t, shops["c"].warm, 8)
	require.Empty(t, w.actor("b").leads(8))
}

func TestEndOfStepDownCallsOffPreparation(t *testing.T) {
	w, a, shops := warmWorld(t, 4, nil, "b")
	a.want(Desired{Roles: 4, Contend: true, Away: w.instant().Mono.Add(100 * time.Millisecond)})
	w.pass(5 * time.Second)
	require.Len(t, a.leads(4), 4)
	require.Empty(t, shops["b"].ready)
	require.Empty(t, shops["b"].open)
	require.Equal(t, map[prepare.Why]int{prepare.CalledOff: 2}, shops["b"].ended)
}

// A holder of a version that offers nothing pings, and gives its roles to a member that is not prepared. So
// does a holder to a member that announces no preparation.
func TestOlderVersionsHandOverCold(t *testing.T) {
	w, a, shops := warmWorld(t, 3, nil, "b")
	a.older = true
	w.pass(10 * time.Second) // in which b says Hello
	a.transfers(t, 1, "b")
	w.pass(time.Second)
	require.Equal(t, []int{1}, w.actor("b").leads(3))
	require.Zero(t, shops["b"].begun)
	w.actor("b").transfers(t, 1, "a")
	w.pass(time.Second)
	require.Equal(t, []int{0, 1, 2}, a.leads(3))
}

func TestPreparationEndsWithThePreparer(t *testing.T) {
	w, a, shops := warmWorld(t, 3, nil, "b")
	shops["b"].takes = time.Second
	a.transfers(t, 1, "b")
	w.pass(100 * time.Millisecond)
	require.Len(t, shops["b"].open, 1)
	w.actor("b").want(Desired{Roles: 3, Closing: true, Contend: true})
	require.Empty(t, shops["b"].open)
	require.Equal(t, map[prepare.Why]int{prepare.Unwilling: 1}, shops["b"].ended)
	w.pass(time.Second)
	require.Equal(t, []int{0, 1, 2}, a.leads(3))
}

func TestBalanceMovesPreparedRolesAtOnce(t *testing.T) {
	w, a, shops := warmWorld(t, 12, func(s *Settings) { s.Rebalance = true }, "b")
	a.set.Rebalance = true
	for range 300 {
		w.pass(100 * time.Millisecond)
		require.LessOrEqual(t, len(a.handingOver("b")), 2, "as many as it prepares at once")
	}
	require.Len(t, a.leads(12), 6)
	require.Len(t, shops["b"].warm, 6)
	require.Equal(t, 2, shops["b"].most)
	require.False(t, a.mover.Rests("b", w.instant().Mono))
}

// A role that a member fails to prepare does not stop others.
func TestFailingRoleDoesNotStopBalance(t *testing.T) {
	w, a, shops := warmWorld(t, 12, func(s *Settings) { s.Rebalance = true }, "b")
	a.set.Rebalance = true
	failing := map[int]bool{} // the first that it is offered
	shops["b"].fails = func(role int) bool {
		if len(failing) < 2 {
			failing[role] = true
		}
		return failing[role]
	}
	for range 2 * balance.MinTenure / time.Second {
		w.pass(time.Second)
		require.False(t, a.mover.Rests("b", w.instant().Mono), "it gets others")
	}
	require.Len(t, w.actor("b").leads(12), 6)
	require.Len(t, failing, 2)
	for _, role := range w.actor("b").leads(12) {
		require.NotContains(t, failing, role)
	}
}

// handingOver returns the roles that are being handed to a process.
func (a *actor) handingOver(to string) (roles []int32) {
	for _, h := range a.shards[0].handovers.InProgress() {
		if h.Successor() == to {
			roles = append(roles, h.Sorted(true)...)
		}
	}
	return roles
}
