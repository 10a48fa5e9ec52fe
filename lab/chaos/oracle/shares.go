package oracle

import (
	"fmt"
	"slices"
)

// Shared reports whether every member has its share. Each role must be led by one of the members with the highest
// preference for it, and if several roles have the same such members, these members' numbers of roles may differ by at
// most one. leaders has the host of each role's leader.
func Shared(leaders, hosts []string, wanted func(host string, role int) int) bool {
	groups := map[string][]int{} // by the members that should have them: how many each of these has
	for role, leader := range leaders {
		best := wanted(slices.MaxFunc(hosts, func(a, b string) int { return wanted(a, role) - wanted(b, role) }), role)
		among := slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return wanted(h, role) < best })
		i := slices.Index(among, leader)
		if i < 0 {
			return false
		}
		key := fmt.Sprint(among)
		if groups[key] == nil {
			groups[key] = make([]int, len(among))
		}
		groups[key][i]++
	}
	for _, has := range groups {
		if slices.Max(has)-slices.Min(has) > 1 {
			return false
		}
	}
	return true
}
