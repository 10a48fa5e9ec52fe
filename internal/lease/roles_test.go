package lease

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawRoles draws an ascending list of roles: scattered, in ranges, or both.
func drawRoles(t *rapid.T, below int32) []int32 {
	set := map[int32]bool{}
	for range rapid.IntRange(0, 60).Draw(t, "stretches") {
		first := rapid.Int32Range(0, below-1).Draw(t, "first")
		n := rapid.SampledFrom([]int32{1, 1, 1, 2, 100}).Draw(t, "length")
		for role := first; role < min(below, first+n); role++ {
			set[role] = true
		}
	}
	roles := make([]int32, 0, len(set))
	for role := range set {
		roles = append(roles, role)
	}
	slices.Sort(roles)
	return roles
}

func TestRolesSurvivePacking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := drawRoles(t, rapid.SampledFrom([]int32{3, 300, MaxRoles}).Draw(t, "below"))
		packed := packRoles(roles)
		got, err := unpackRoles(packed, len(roles))
		if err != nil || !slices.Equal(got, roles) {
			t.Fatalf("%v became %v by %q: %v", roles, got, packed, err)
		}
		if len(roles) > 0 {
			if _, err := unpackRoles(packed, len(roles)-1); err == nil {
				t.Fatalf("%d roles within a limit of %d", len(roles), len(roles)-1)
			}
			if most := size(roles); len(packed) > most {
				t.Fatalf("%d bytes, %d were expected at most", len(packed), most)
			}
		}
	})
}

func TestAMillionRolesInOneRange(t *testing.T) {
	roles := make([]int32, MaxRoles)
	for i := range roles {
		roles[i] = int32(i)
	}
	require.Equal(t, "0-999999", packRoles(roles))
	got, err := unpackRoles("0-999999", MaxRoles)
	require.NoError(t, err)
	require.Len(t, got, MaxRoles)
	_, err = unpackRoles("0-1000000", 2*MaxRoles)
	require.Error(t, err)
	_, err = unpackRoles("0-18446744073709551615", MaxRoles)
	require.Error(t, err)
}

// The largest possible Claim, however scattered its roles, fits a record.
func TestTheLargestClaimFitsARecord(t *testing.T) {
	for _, gap := range []int32{2, 50, 99} {
		roles := make([]int32, MaxClaim)
		for i := range roles {
			roles[i] = int32(i)*gap + int32(i%2)
		}
		r := Record{Kind: Claim, Session: Session{"x", 1}, Seq: 1, T: 1, Longest: Unsaid, Fresh: true, Roles: roles}
		value := testCodec.Encode(&r)
		require.LessOrEqual(t, len(value), MaxRecord)
		got, err := testCodec.Decode(value)
		require.NoError(t, err)
		require.Equal(t, roles, got.Roles)
	}
}

func TestRoleSet(t *testing.T) {
	var s roleSet
	s.remove(7)
	assert.False(t, s.has(7), "an empty set has a role")
	for _, role := range []int32{0, 63, 64, 1000} {
		s.add(role)
	}
	var in []int32
	for role := range int32(2000) {
		if s.has(role) {
			in = append(in, role)
		}
	}
	assert.Equal(t, []int32{0, 63, 64, 1000}, in)
	s.remove(64)
	assert.False(t, s.has(64))
	assert.True(t, s.has(63))
}
