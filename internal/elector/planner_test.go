package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

// In a plan, silent and suspected holders hold nothing. A role that is being handed over counts as its successor's.
func TestPlansIgnoreSilentAndSuspectedHolders(t *testing.T) {
	k, s := leading(t, 2, nil)
	k.joined("b", 2)
	k.joined("c", 2)
	plan, me := k.Plan(false, k.now)
	b := int32(plan.Find("b"))
	require.Equal(t, []int32{int32(me), int32(me)}, k.Holders(plan, k.now))
	s.begin(handover.NewHandover(term.Rebalanced, k.now, "b", true), 1)
	require.Equal(t, []int32{int32(me), b}, k.Holders(plan, k.now))
	s.begin(handover.NewHandover(term.Closing, k.now, "", true), 0)
	require.Equal(t, []int32{int32(me), b}, k.Holders(plan, k.now), "it is nobody else's yet")
	later := k.now.Add(s.leases.FreeAt(0).Sub(k.now.Raw))
	require.Equal(t, placement.Nobody, int(k.Holders(plan, later)[0]), "its lease is over")

	k = newRooms(1, 2, nil)
	k.begin()
	k.joined("b", 2)
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}}))
	plan, _ = k.Plan(false, k.now)
	require.Equal(t, []int32{int32(plan.Find("b")), placement.Nobody}, k.Holders(plan, k.now))
	k.desired.Roles = 1
	require.Len(t, k.Holders(plan, k.now), 1)
	k.desired.Roles = 4
	require.Len(t, k.Holders(plan, k.now), 4)
	k.members.Suspect("b")
	require.Equal(t, placement.Nobody, int(k.Holders(plan, k.now)[0]))
}

// A holder that has been silent for half of its lease is no candidate, if the log works.
func TestASilentHolderIsNoCandidate(t *testing.T) {
	k := newRooms(1, 2, nil)
	k.begin()
	s := k.shards[0]
	k.joined("b", 2)
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}}))
	half := s.leases.FreeAt(0).Sub(k.now.Raw) / 2
	silent := func(d time.Duration) bool { return k.shards.silentHolders(k.now.Add(d))["b"] }
	require.False(t, silent(half))
	require.True(t, silent(half+1))
	plan, _ := k.Plan(false, k.now.Add(half+1))
	require.Negative(t, plan.Find("b"))
	stalls(s.main)
	require.False(t, silent(half+1), "the log stands still")
	works(s.main, k.now.Add(1))
	require.False(t, silent(half+1), "it has stood still")
}

// This process is a candidate while it is willing to lead, and a steady one after SteadyAfter.
func TestWillingProcessIsACandidate(t *testing.T) {
	for name, change := range map[string]func(*rooms){
		"an observer":       func(k *rooms) { k.set.Observer = true },
		"one that is away":  func(k *rooms) { k.desired.Away = k.now.Mono + 1 },
		"one that has hung": func(k *rooms) { k.alive = false },
	} {
		k := newRooms(1, 2, nil)
		change(k)
		_, me := k.Plan(false, k.now)
		require.Negative(t, me, name)
	}
	k := newRooms(1, 2, nil)
	k.desired.Priority = 4
	k.mover.Contend(true, k.now)
	for d, steady := range map[time.Duration]bool{roster.SteadyAfter - 1: false, roster.SteadyAfter: true} {
		plan, me := k.Plan(false, k.now.Add(d))
		c := plan.Candidate(me)
		require.Equal(t, []any{"a", 4, 2, steady, !steady}, []any{c.ID, c.Priority, c.Roles, c.Steady, c.Soon})
	}
}

// Roles that become vacant on several partitions within a short time are assigned together.
// Otherwise one process would come first on all partitions.
func TestPartitionsAreSharedOutTogether(t *testing.T) {
	k := newRooms(6, 6, nil)
	k.begin()
	k.joined("b", 6)
	k.joined("c", 6)
	plan, _ := k.Plan(true, k.now)
	by := map[int32]int{}
	for _, s := range k.shards {
		first := s.assignments(plan, []int32{0}, true, k.told(k.now), k.now)
		by[first[s.Role(0)]]++
	}
	require.Equal(t, map[int32]int{0: 2, 1: 2, 2: 2}, by)
	shares := func(now clock.Instant) *int32 {
		return &k.shards[3].assignments(plan, []int32{0}, true, k.told(now), now)[0]
	}
	was := shares(k.now)
	k.planner.Free(k.set.T, k.now)
	require.Same(t, was, shares(k.now), "it is computed once")
	later := k.now.Add(k.set.T / 20)
	now := shares(later)
	require.NotSame(t, was, now, "what holds may have changed")
	k.planner.Free(k.set.T, later.Add(k.set.T/20))
	require.NotSame(t, now, shares(later))
}

// On one partition only the given roles are assigned.
func TestOnePartitionAssignsOnlyGivenRoles(t *testing.T) {
	k, s := vacantRooms(4)
	plan, _ := k.Plan(true, k.now)
	first := s.assignments(plan, []int32{1}, false, k.told(k.now), k.now)
	require.Equal(t, []bool{true, false, true, true}, []bool{first[0] == roster.Uncovered, first[1] == roster.Uncovered, first[2] == roster.Uncovered, first[3] == roster.Uncovered})
	again := s.assignments(plan, []int32{1, 2}, false, k.told(k.now), k.now)
	require.NotEqual(t, roster.Uncovered, again[2])
	k.desired.Roles = 3
	require.Len(t, s.assignments(plan, []int32{0}, false, k.told(k.now), k.now), 3, "R has changed")
}

// A holder that has nothing to hand over looks again when that may have changed: a record has
// changed a holder, a handover was called off, the plan is another one.
func TestLevelHolderLooksAgainAfterAChange(t *testing.T) {
	k, s := leading(t, 2, nil)
	m := &k.mover
	look := func(replanned bool) bool { return !m.Needless(replanned, k.shards.placed(k.terms.Counts().Told)) }
	level := func() { m.Weigh(nil, func() bool { return false }, k.now) }
	require.True(t, look(false), "it has never looked")
	level()
	require.False(t, look(false))
	for name, change := range map[string]func(){
		"a role has another holder": func() { k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Roles: []int32{1}})) },
		"a handover is called off": func() {
			h := handover.NewHandover(term.Rebalanced, k.now, "b", true)
			s.begin(h, 0)
			require.False(t, look(false), "this process is the one that hands it over")
			s.callOff(h)
		},
	} {
		change()
		require.True(t, look(false), name)
		require.True(t, look(false), "%s: until all is level", name)
		level()
		require.False(t, look(false), name)
	}
	require.True(t, look(true), "there is another plan")
	level()
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Beat}))
	require.False(t, look(false), "a Beat changes no holder")
}

// A record on one of many partitions may name a role that no member can have. It costs no memory for
// the lower roles of the other partitions.
func TestHugeRoleNumberCostsBoundedMemory(t *testing.T) {
	k := newRooms(16, 2, nil)
	k.begin()
	k.joined("b", 2)
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0, lease.MaxRoles - 1}}))
	plan, _ := k.Plan(false, k.now)
	out := k.Holders(plan, k.now)
	require.LessOrEqual(t, len(out), lease.MaxRoles)
	require.Equal(t, int32(plan.Find("b")), out[0])
	require.Len(t, k.shards[1].assignments(plan, []int32{0}, false, k.told(k.now), k.now), 2)
}
