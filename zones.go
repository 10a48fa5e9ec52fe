package neli

import (
	"fmt"
	"slices"

	"github.com/goneli/neli/internal/lease"
)

const maxZones = 1000

// ByZone returns a Config.Preference for zones in order: all roles are led in the first zone that has a
// healthy member, by its members with the highest Priority. Members of other zones, and those without
// one, come last. Give all members the same zones in the same order.
//
// ByZone panics without a zone, with more than 1,000, with the same one twice, and with one that
// Config.Zone would refuse.
func ByZone(zones ...string) func(m Member, role int) int {
	if len(zones) == 0 || len(zones) > maxZones {
		panic(fmt.Sprintf("neli: ByZone: %d zones given: must be 1 to %d", len(zones), maxZones))
	}
	zones = slices.Clone(zones)
	for i, zone := range zones {
		rule := lease.CheckZone(zone)
		switch {
		case zone == "":
			rule = "must not be empty: members without a zone come last"
		case slices.Contains(zones[:i], zone):
			rule = "must be given once"
		}
		if rule != "" {
			panic(fmt.Sprintf("neli: ByZone: zone %q %s", zone, rule))
		}
	}
	return func(m Member, _ int) int {
		rank := 0
		if i := slices.Index(zones, m.Zone); i >= 0 {
			rank = len(zones) - i
		}
		return rank*(2*maxPriority+1) + m.Priority // fits the 32 bits of a preference
	}
}
