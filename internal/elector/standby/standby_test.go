package standby

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/placement"
)

func TestStandbyIsNotTheHolder(t *testing.T) {
	var table Table
	require.Empty(t, table.Of(3, "a"), "nobody stands by")
	require.True(t, table.Update([]string{"a"}))
	require.False(t, table.Update([]string{"a"}))
	require.Empty(t, table.Of(3, "a"), "nor for itself")
	require.Equal(t, "a", table.Of(3, "b"))
	table.Update([]string{"a", "b", "c"})
	for role := range 3 * buckets {
		first := table.Of(role, "")
		second := table.Of(role, first)
		require.NotEqual(t, first, second)
		require.NotEmpty(t, second)
		for _, holder := range []string{"a", "b", "c", "d"} {
			if holder != first {
				require.Equal(t, first, table.Of(role, holder))
			}
		}
	}
}

// When a member joins, roles move to it, and so do standbys. With the placement that the library computes, no more
// standbys move than twice one member's share.
func TestFewStandbysMoveWhenAMemberJoins(t *testing.T) {
	const roles = 10_000
	all := make([]int32, roles)
	for i := range all {
		all[i] = int32(i)
	}
	for _, n := range []int{3, 5, 10, 20, 50} {
		var who []string
		standbys := func(holders []int32, plan *placement.Plan) (of []string, most int) {
			var table Table
			table.Update(who)
			load := map[string]int{}
			for role := range roles {
				id := table.Of(role, plan.Candidate(int(holders[role])).ID)
				of = append(of, id)
				load[id]++
				most = max(most, load[id])
			}
			return of, most
		}
		place := func(holders []int32) ([]int32, *placement.Plan) {
			var candidates []placement.Candidate
			for _, id := range who {
				candidates = append(candidates, placement.Candidate{ID: id, Roles: roles, Steady: true})
			}
			plan := placement.New(candidates)
			if holders == nil {
				return plan.Assign(all, nil), plan
			}
			seen := slices.Clone(holders)
			for me := range plan.Len() {
				for _, v := range plan.Moves(me, seen, func(int) bool { return true }, roles) {
					for _, role := range v.Roles {
						holders[role] = int32(v.To)
					}
				}
			}
			return holders, plan
		}
		for i := range n {
			who = append(who, fmt.Sprintf("m%03d", i))
		}
		holders, plan := place(nil)
		before, most := standbys(holders, plan)
		require.LessOrEqual(t, most*n, roles*3/2, "%d members: the one with most standbys", n)
		who = append(who, fmt.Sprintf("m%03d", n))
		holders, plan = place(holders)
		after, _ := standbys(holders, plan)
		moved := 0
		for role := range roles {
			if before[role] != after[role] {
				moved++
			}
		}
		t.Logf("%d → %d members: %d standbys move, %.2f × 2R/members; at most %.2f × mean", n, n+1, moved, float64(moved*(n+1))/(2*roles), float64(most*n)/roles)
		require.LessOrEqual(t, moved*(n+1), 2*roles)
	}
}
