package byrole

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
