package byrole

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// After the same operations, a Map has what a Go map has, in ascending order.
func TestByRoleIsAMap(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var m Map[int]
		want := map[int32]int{}
		for step := range 2000 {
			local := rnd.Int32N([]int32{3, 200, 20_000}[seed%3])
			if rnd.IntN(5) < 2 {
				m.Remove(local)
				delete(want, local)
			} else {
				m.Set(local, step)
				want[local] = step
			}
			v, ok := m.get(local)
			w, there := want[local]
			require.Equal(t, w, v)
			require.Equal(t, there, ok)
			require.Equal(t, there, m.Has(local))
			require.Equal(t, len(want), m.Len())
		}
		roles := slices.Sorted(maps.Keys(want))
		require.Equal(t, want, maps.Collect(m.All()))
		require.Equal(t, roles, m.Roles())
		require.Equal(t, roles[len(roles)-1], m.Top())
		middle := roles[len(roles)/2]
		var after []int32
		for local := range m.From(middle) {
			after = append(after, local)
		}
		require.Equal(t, roles[len(roles)/2:], after)
		for local := range m.All() {
			if local > middle {
				break
			}
		}
		for _, local := range roles {
			m.Remove(local)
		}
		require.Equal(t, int32(-1), m.Top())
		require.Empty(t, m.Roles())
		_, ok := m.get(middle)
		require.False(t, ok)
	}
}

func TestRolesAreNumberedWithinAShard(t *testing.T) {
	for _, of := range []int{1, 2, 3, 7} {
		for _, roles := range []int{0, 1, of - 1, of, of + 1, 1000} {
			all := map[int]bool{}
			for i := range of {
				n := Numbering{i, of}
				for local := range n.Count(roles) {
					require.Less(t, n.Role(local), roles)
					all[n.Role(local)] = true
				}
				require.GreaterOrEqual(t, n.Role(n.Count(roles)), roles, "the next one is beyond R")
			}
			require.Len(t, all, roles, "each of %d roles is in one of %d shards", roles, of)
		}
	}
	require.Equal(t, []int{1, 7}, Numbering{1, 3}.Units([]int32{0, 2}))
}
