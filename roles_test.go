package neli

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPartitionOf(t *testing.T) {
	for _, c := range []struct{ role, partitions, want int }{
		{0, 1, 0}, {9, 1, 0}, {0, 4, 0}, {3, 4, 3}, {4, 4, 0}, {4003, 4, 3}, {math.MaxInt, 1 << 10, 1<<10 - 1},
	} {
		require.Equal(t, c.want, partitionOf(c.role, c.partitions), "role %d of %d partitions", c.role, c.partitions)
	}
}

func TestRolesOn(t *testing.T) {
	for _, c := range []struct {
		p, partitions, roles int
		want                 []int
	}{
		{0, 1, 3, []int{0, 1, 2}},
		{0, 4, 1, []int{0}},
		{1, 4, 1, nil},
		{1, 4, 10, []int{1, 5, 9}},
		{3, 4, 4, []int{3}},
		{3, 4, 3, nil},
	} {
		require.Equal(t, c.want, slices.Collect(rolesOn(c.p, c.partitions, c.roles)), "%+v", c)
	}
	// As many as there can be: a million roles, on any number of partitions.
	for _, partitions := range []int{1, 7, maxPartitions, math.MaxInt32} {
		n, last := 0, -1
		for role := range rolesOn(1%partitions, partitions, maxRoles) {
			require.True(t, last < role && role < maxRoles, "%d follows %d", role, last)
			if last = role; partitions > 1 && n >= maxRoles/partitions+1 {
				t.Fatal("there are more than can be")
			}
			if n++; n == 1000 {
				break
			}
		}
		require.Positive(t, n)
	}
	for role := range rolesOn(0, 1, math.MaxInt) {
		if role == 5 {
			break // an iterator that goes on calling panics here
		}
	}
}

// Every role lives on exactly one partition, and both directions agree.
func TestRolesAndPartitionsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		partitions, roles := rapid.IntRange(1, 40).Draw(t, "M"), rapid.IntRange(0, 200).Draw(t, "R")
		seen := map[int]int{}
		for p := range partitions {
			last := -1
			for role := range rolesOn(p, partitions, roles) {
				require.Greater(t, role, last)
				require.Less(t, role, roles)
				require.Equal(t, p, partitionOf(role, partitions))
				last = role
				seen[role]++
			}
		}
		require.Len(t, seen, roles)
		for role, n := range seen {
			require.Equal(t, 1, n, "role %d", role)
		}
	})
}

// The mapping is fixed for ever. The values are those of
//
//	printf %s KEY | sha256sum | cut -c1-16     read as hexadecimal, modulo n
func TestSlotIsFixed(t *testing.T) {
	for _, c := range []struct {
		key  string
		want map[int]int // by n
	}{
		{"", map[int]int{1: 0, 7: 1, 10: 2, 1000: 652}},
		{"a", map[int]int{1: 0, 7: 4, 10: 0, 1000: 250}},
		{"b", map[int]int{1: 0, 7: 0, 10: 6, 1000: 946}},
		{"0", map[int]int{1: 0, 7: 3, 10: 0, 1000: 40}},
		{"customer-42", map[int]int{1: 0, 7: 5, 10: 9, 1000: 469}},
		{"customer-43", map[int]int{1: 0, 7: 6, 10: 0, 1000: 490}},
		{"Zürich", map[int]int{1: 0, 7: 6, 10: 3, 1000: 653}},
	} {
		for n, want := range c.want {
			require.Equal(t, want, Slot(c.key, n), "%q of %d", c.key, n)
		}
	}
}

func TestSlotSpreads(t *testing.T) {
	const slots, keys = 16, 16_000
	var count [slots]int
	for i := range keys {
		count[Slot(fmt.Sprint("customer-", i), slots)]++
	}
	for slot, n := range count {
		require.InDelta(t, keys/slots, n, 150, "slot %d", slot) // five standard deviations
	}
}

func TestSlotRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, n := rapid.String().Draw(t, "key"), rapid.IntRange(1, math.MaxInt).Draw(t, "n")
		slot := Slot(key, n)
		require.True(t, 0 <= slot && slot < n)
		require.Equal(t, slot, Slot(key, n))
	})
	for _, n := range []int{0, -1, math.MinInt} {
		require.PanicsWithValue(t, "neli: Slot: n must be at least 1", func() { Slot("a", n) })
	}
}

// Standings as JSON have roles as ranges.
func TestRangesOf(t *testing.T) {
	for want, roles := range map[string][]int{"": nil, "7": {7}, "0-1": {0, 1}, "0-3,5,7-8": {0, 1, 2, 3, 5, 7, 8}} {
		require.Equal(t, want, rangesOf(roles))
	}
	b, err := json.Marshal(Standing{Partition: 1, Status: Held, Holder: Holder{Name: "a"}, roles: []int{0, 1, 4}})
	require.NoError(t, err)
	require.Contains(t, string(b), `"roles":"0-1,4","count":3`)
}
