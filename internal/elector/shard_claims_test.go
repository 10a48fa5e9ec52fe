package elector

import (
	"fmt"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/nominate"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
	"github.com/stretchr/testify/require"
)

// listing returns which roles are listed for what, and for when.
func listing(c *vacancy.Claims) map[vacancy.Upcoming]map[int32]clock.Mono {
	out := map[vacancy.Upcoming]map[int32]clock.Mono{vacancy.ToClaim: {}, vacancy.ToAssign: {}, vacancy.ToRank: {}}
	for local := range int32(1 << 20) {
		if what, at, listed := c.Planned(local); listed {
			out[what][local] = at
		}
	}
	return out
}

// vacantRooms is rooms with members b and c, where this process knows that nobody holds a role.
func vacantRooms(roles int) (*rooms, *shard) {
	k := newRooms(1, roles, nil)
	k.begin()
	k.joined("b", roles)
	k.joined("c", roles)
	s := k.shards[0]
	all := make([]int32, roles)
	for i := range all {
		all[i] = int32(i)
	}
	k.read(0, k.from("z", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: all}))
	works(s.main, k.now)
	r := k.from("z", 0, lease.Record{Kind: lease.Release, Ended: []lease.Grant{{Token: 0, Roles: all}}})
	ev := s.leases.Read(0, Entry{Offset: k.ends[0]}, &r, nil, k.now)
	k.ends[0]++
	if len(ev.Changed) != roles {
		panic("they are not vacant")
	}
	s.leases.Changed()
	s.claims.Init()
	return k, s
}

// Processes that start together and read a long history have as long again to claim, but T/2 at most.
func TestAShardLeavesOthersTimeToRead(t *testing.T) {
	for _, tc := range []struct{ took, want time.Duration }{
		{50 * time.Millisecond, 0}, {400 * time.Millisecond, 400 * time.Millisecond}, {time.Hour, 500 * time.Millisecond},
	} {
		k, s := vacantRooms(9)
		s.main.CaughtUpAt, s.main.History = k.now, tc.took
		for _, passed := range []time.Duration{0, 300 * time.Millisecond} {
			s.claims.Init()
			now := k.now.Add(passed)
			s.assign([]int32{0, 1, 2, 3, 4, 5, 6, 7, 8}, k.told(now), now)
			l := listing(&s.claims)[vacancy.ToRank]
			require.Len(t, l, 6)
			for _, at := range l {
				require.GreaterOrEqual(t, at, k.now.Mono.Add(tc.want), "a history of %v", tc.took)
				require.Less(t, at, max(now.Mono, k.now.Mono.Add(tc.want)).Add(200*time.Millisecond), "a history of %v", tc.took)
			}
		}
	}
}

// Assigning a million roles takes a tenth of a second, and others do it at the same time. A process
// that ranks their roles before they can claim takes their shares, and needs half a minute to give
// them back.
func TestAShardLeavesOthersTimeToShareOut(t *testing.T) {
	for _, c := range []struct{ members, roles int }{{3, 1_000_000}, {100, 30_000}} {
		k, s := vacantRooms(c.roles)
		for i := range c.members - 3 { // it has two already
			k.joined(fmt.Sprint("m", i), c.roles)
		}
		all := make([]int32, c.roles)
		for i := range all {
			all[i] = int32(i)
		}
		s.assign(all, k.told(k.now), k.now)
		l := listing(&s.claims)[vacancy.ToRank]
		require.Greater(t, len(l), c.roles/2)
		for _, at := range l {
			if at < k.now.Mono.Add(400*time.Millisecond) {
				require.Fail(t, "others have not assigned by then", "%d members, %d roles", c.members, c.roles)
			}
		}
	}
}

// Each member that ranks before this process has a turn.
func TestAShardClaimsOthersSharesByRank(t *testing.T) {
	k, s := vacantRooms(9)
	plan, me := k.Plan(true, k.now)
	all := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8}
	assigned := s.assignments(plan, all, false, k.told(k.now), k.now)
	s.claims.Rank(all, vacancy.Ranking{Plan: plan, Me: me, First: assigned, RoleOf: s.Numbering}, k.in().ClaimTurn(0), k.now)
	l := listing(&s.claims)[vacancy.ToClaim]
	turn, third := k.in().ClaimTurn(0), 0
	for _, local := range all {
		switch plan.Rank(me, int(assigned[local]), int(local)) {
		case 0, 1: // the first one has had its turn
			require.Equal(t, k.now.Mono, l[local], "role %d", local)
		default:
			require.Equal(t, k.now.Mono.Add(turn), l[local], "role %d", local)
			third++
		}
	}
	require.Positive(t, third)
	require.Less(t, third, 6, "it comes second for some")

	s.claims.Clear()
	s.claims.Rank(all, vacancy.Ranking{Plan: plan, Me: me, First: assigned, RoleOf: s.Numbering, Full: true}, turn, k.now)
	for local, at := range listing(&s.claims)[vacancy.ToClaim] {
		if int(assigned[local]) != me {
			require.Equal(t, k.now.Mono.Add(turn*placement.MaxRank), at, "role %d: one that is full comes last", local)
		}
	}
}

// A process that knows nothing claims its share when no lease can be left, or later if others rank
// before it. It claims at least one role, since a Claim shows others that nobody holds any.
func TestAShardClaimsWithoutKnowingTheFold(t *testing.T) {
	k := newRooms(1, 6, nil)
	k.begin()
	s := k.shards[0]
	s.placeFresh(k.told(k.now), k.now)
	require.Len(t, listing(&s.claims)[vacancy.ToClaim], 6, "it is alone")
	rank := 0
	for name := 'b'; rank == 0; name += 2 {
		k.members = roster.NewMembers()
		k.members.Open(1)
		k.joined(string(name), 6)
		k.joined(string(name+1), 6)
		plan, me := k.Plan(true, k.now)
		rank = plan.Rank(me, int(s.assignments(plan, []int32{0, 1, 2, 3, 4, 5}, true, k.told(k.now), k.now)[0]), 0)
	}
	s.claims.Clear()
	s.placeFresh(k.told(k.now), k.now)
	l := listing(&s.claims)[vacancy.ToClaim]
	require.Len(t, l, 2)
	for _, at := range l {
		require.Equal(t, k.now.Mono.Add(2*k.trip.Takes()*time.Duration(rank)), at, "others come first for role 0")
	}

	k.desired.Roles = 1
	for id := 'D'; k.members.Size() < 13; id++ {
		k.joined(string(id), 1)
	}
	s.claims.Clear()
	s.placeFresh(k.told(k.now), k.now)
	require.Len(t, listing(&s.claims)[vacancy.ToClaim], 1, "though it is another's share")
	k.desired.Roles = 0
	s.claims.Clear()
	s.placeFresh(k.told(k.now), k.now)
	require.True(t, s.claims.IsEmpty())

	k.desired.Roles, k.set.Nominated = 6, true
	s.placeFresh(k.told(k.now), k.now)
	l = listing(&s.claims)[vacancy.ToClaim]
	require.Len(t, l, 6, "the nominator has chosen it")
	require.Equal(t, k.now.Mono, l[3])
}

// A process plans to claim vacant roles only if it would lead them. A process that passes them over
// reconsiders all vacant roles when it is willing again.
func TestAShardPassesOverUnclaimableRoles(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rooms)
		eager  bool // it has passed over nothing
		plans  bool
	}{
		"one that would lead":             {func(*rooms) {}, true, true},
		"one that has stepped down":       {func(k *rooms) { k.desired.Away = clock.Never }, false, false},
		"one whose application has hung":  {func(k *rooms) { k.alive = false }, false, false},
		"one that is not nominated":       {func(k *rooms) { k.shards[0].nomination = nominate.NewNomination(false) }, true, false},
		"one that is nominated":           {func(k *rooms) { k.set.Nominated = true }, true, true},
		"one that wants none of them now": {func(k *rooms) { k.desired.Roles = 1 }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			k, s := vacantRooms(3)
			k.eager = true
			c.change(k)
			s.vacate([]int32{1, 2}, k.told(k.now), k.now)
			k.flush()
			require.Equal(t, c.eager, k.eager)
			require.Equal(t, c.plans, !s.claims.IsEmpty())
			if k.set.Nominated {
				require.Equal(t, map[int32]clock.Mono{1: k.now.Mono, 2: k.now.Mono}, listing(&s.claims)[vacancy.ToClaim], "it shares with nobody")
			}
		})
	}
}

// A holder that is silent until its lease is over is suspected to be dead. If the log has stood still
// meanwhile, its silence says nothing.
func TestAShardNoticesASilentHolder(t *testing.T) {
	for name, stood := range map[string]bool{"silent": false, "the log stood still": true} {
		t.Run(name, func(t *testing.T) {
			k := newRooms(1, 2, nil)
			k.begin()
			s := k.shards[0]
			s.main.Announcements.CatchUp(true, 0, k.now)
			k.joined("b", 2)
			k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0, 1}}))
			s.noticeSilent(k.told(k.now), k.now)
			k.now = k.now.Add(k.now.MonoOf(s.claims.NextSilent()).Sub(k.now.Mono) - 1)
			s.noticeSilent(k.told(k.now), k.now)
			require.True(t, s.claims.IsEmpty())
			require.False(t, k.members.Suspected("b"))
			k.now = k.now.Add(1)
			if stood {
				stalls(s.main)
				works(s.main, k.now)
			}
			s.noticeSilent(k.told(k.now), k.now)
			require.Equal(t, !stood, k.members.Suspected("b"))
			require.Equal(t, 2, s.vacancyStats.Vacant())
			require.False(t, s.claims.IsEmpty(), "they may be claimed in any case")
			s.claims.Clear()
			s.noticeSilent(k.told(k.now), k.now)
			require.True(t, s.claims.IsEmpty(), "it is noticed once")
			s.reconsiderVacant(k.told(k.now), k.now)
			require.False(t, s.claims.IsEmpty(), "unless all is looked at again")
		})
	}
}

// With a million roles, assigning them and claiming them takes too long for one step.
func TestManyRolesAreClaimedInTheStepAfterSharingOut(t *testing.T) {
	for _, roles := range []int{handover.StepRoles, handover.StepRoles + 1} {
		k := newRooms(1, roles, nil)
		k.begin()
		s := k.shards[0]
		all := make([]int32, roles)
		for i := range all {
			all[i] = int32(i)
		}
		s.assign(all, k.told(k.now), k.now)
		require.Equal(t, roles <= handover.StepRoles, s.claims.Next(0) <= k.now.Mono, "%d roles", roles)
		require.LessOrEqual(t, s.claims.Next(0), k.now.Mono+1)
		require.Len(t, s.claims.Take(k.now.Add(time.Millisecond), s.Count(k.desired.Roles)), roles)
	}
}
