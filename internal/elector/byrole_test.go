package elector

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever is done to it, it has what a map has, ascending.
func TestByRoleIsAMap(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var m byRole[int]
		want := map[int32]int{}
		for step := range 2000 {
			role := rnd.Int32N([]int32{3, 200, 20_000}[seed%3])
			if rnd.IntN(5) < 2 {
				m.remove(role)
				delete(want, role)
			} else {
				m.set(role, step)
				want[role] = step
			}
			v, ok := m.get(role)
			w, there := want[role]
			require.Equal(t, w, v)
			require.Equal(t, there, ok)
			require.Equal(t, there, m.has(role))
			require.Equal(t, len(want), m.len())
		}
		roles := slices.Sorted(maps.Keys(want))
		require.Equal(t, want, maps.Collect(m.all()))
		require.Equal(t, roles, m.roles())
		require.Equal(t, roles[len(roles)-1], m.top())
		middle := roles[len(roles)/2]
		var after []int32
		for role := range m.from(middle) {
			after = append(after, role)
		}
		require.Equal(t, roles[len(roles)/2:], after)
		for role := range m.all() {
			if role > middle {
				break
			}
		}
		for _, role := range roles {
			m.remove(role)
		}
		require.Equal(t, int32(-1), m.top())
		require.Empty(t, m.roles())
		_, ok := m.get(middle)
		require.False(t, ok)
	}
}
