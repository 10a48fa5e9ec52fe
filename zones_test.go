package neli

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

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
