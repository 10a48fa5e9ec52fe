package neli

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/goneli/neli/internal/clock"
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
	// The largest numbers: a million roles, on any number of partitions.
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
			break // panics here if the iterator goes on calling
		}
	}
}

// Every role lives on exactly one partition, and partitionOf and rolesOn agree.
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

// In JSON the roles of a Standing are ranges.
func TestRangesOf(t *testing.T) {
	for want, roles := range map[string][]int{"": nil, "7": {7}, "0-1": {0, 1}, "0-3,5,7-8": {0, 1, 2, 3, 5, 7, 8}} {
		require.Equal(t, want, rangesOf(roles))
	}
	b, err := json.Marshal(Standing{Partition: 1, Status: StatusHeld, Holder: Holder{Name: "a"}, roles: []int{0, 1, 4}})
	require.NoError(t, err)
	require.Contains(t, string(b), `"roles":"0-1,4","count":3`)
}

// shifted returns v later by mono on the monotonic clock and by wall on the wall clock.
func shifted(v clock.Instant, mono, wall time.Duration) clock.Instant {
	return clock.Instant{Mono: v.Mono.Add(mono), Wall: v.Wall.Add(wall)}
}

var someInstant = clock.Instant{Mono: clock.Mono(time.Hour), Wall: clock.Wall(9 * time.Hour)}

// In exclusive mode leadership ends at 0.9 T, because a holder's clock may be slewed by a tenth.
func TestYoung(t *testing.T) {
	const T = 5 * time.Second
	const Th = 4500 * time.Millisecond
	for _, c := range []struct {
		name               string
		mono, wall         time.Duration // since v
		exclusive, another bool          // whether it leads, by mode
	}{
		{"at once", 0, 0, true, true},
		{"just in time", Th - 1, Th - 1, true, true},
		{"at 0.9 T", Th, Th, false, true},
		{"just before T", T - 1, T - 1, false, true},
		{"at T", T, T, false, false},
		{"long after", 1000 * T, 1000 * T, false, false},
		{"V lies ahead", -1, -1, false, false},
		{"the machine was suspended: its monotonic clock stood still", 1, Th, false, true},
		{"the wall clock was set forward", 1, time.Hour, false, true},
		{"the wall clock was set back", Th - 1, -time.Hour, true, true},
		{"the wall clock was set back, and T is over", T, -time.Hour, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := someInstant
			now := shifted(v, c.mono, c.wall)
			require.Equal(t, c.exclusive, threshold{T, true}.young(now, v), "exclusive")
			require.Equal(t, c.another, threshold{T, false}.young(now, v), "non-exclusive")
		})
	}
}

// While neither clock is set back, leadership that has ended does not return: if a later reading
// shows leadership, an earlier one does too.
func TestLeadershipThatHasEndedDoesNotReturn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, name))
		}
		h := threshold{1 + some("T"), rapid.Bool().Draw(t, "exclusive")}
		v := shifted(someInstant, some("mono"), some("wall"))
		now := shifted(v, some("mono passed"), some("wall passed"))
		later := shifted(now, some("mono more"), some("wall more"))
		if h.young(later, v) && !h.young(now, v) {
			t.Fatalf("leads at %v, did not at %v", later, now)
		}
		if h.young(now, v) && !(threshold{h.t, false}).young(now, v) {
			t.Fatal("the exclusive reading is the more generous one")
		}
	})
}

func TestRemainingTimeOfALease(t *testing.T) {
	const T = 5 * time.Second
	v := someInstant
	for whole, h := range map[time.Duration]threshold{4500 * time.Millisecond: {T, true}, T: {T, false}} {
		require.Equal(t, whole, h.left(v, v))
		require.Equal(t, whole-3*time.Second, h.left(v.Add(3*time.Second), v))
		require.Zero(t, h.left(v.Add(T), v))
		require.Zero(t, h.left(v.Add(-1), v), "V lies ahead")
	}
	suspended := shifted(v, time.Second, 4*time.Second)
	require.Equal(t, 500*time.Millisecond, threshold{T, true}.left(suspended, v))
	require.Equal(t, 4*time.Second, threshold{T, false}.left(suspended, v))
}

func TestByZone(t *testing.T) {
	zones := []string{"a", "b"}
	prefer := ByZone(zones...)
	zones[0] = "changed later"
	order := []Member{{Zone: "a", Priority: maxPriority}, {Zone: "a"}, {Zone: "a", Priority: -maxPriority}, {Zone: "b", Priority: maxPriority},
		{Zone: "b", Priority: -maxPriority}, {Priority: maxPriority}, {Zone: "c"}, {Priority: -1}}
	for i, m := range order[1:] {
		require.Less(t, prefer(m, 3), prefer(order[i], 3), "%+v", m)
	}
	require.Equal(t, prefer(Member{Zone: "c"}, 0), prefer(Member{}, 9))

	many := make([]string, maxZones)
	for i := range many {
		many[i] = fmt.Sprint("zone-", i)
	}
	require.LessOrEqual(t, ByZone(many...)(Member{Zone: many[0], Priority: maxPriority}, 0), math.MaxInt32)
}

func TestByZoneRefusesBadZones(t *testing.T) {
	for rule, zones := range map[string][]string{
		"0 zones given: must be 1 to 1000":                   {},
		"1001 zones given: must be 1 to 1000":                make([]string, 1001),
		`zone "" must not be empty`:                          {"a", ""},
		`zone "a" must be given once`:                        {"a", "b", "a"},
		`zone "a b" must be at most 64 bytes of UTF-8`:       {"a b"},
		`zone "a\n" must be at most 64 bytes of UTF-8, with`: {"a\n"},
	} {
		func() {
			defer func() { require.Contains(t, recover(), "neli: ByZone: "+rule) }()
			ByZone(zones...)
		}()
	}
}
