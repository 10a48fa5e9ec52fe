package warm

import (
	"slices"

	"github.com/goneli/neli/internal/placement"
)

// Toward returns the plan that hands roles for balance rather to members that stand by for them.
func (x *Exchange) Toward(plan *placement.Plan) *placement.Plan {
	if x.look(); x.standbys.IsEmpty() {
		return plan
	}
	return plan.Toward(func(role int) int {
		if role >= maxStandby {
			return placement.Nobody
		}
		return plan.Find(x.standbys.Of(role, x.self))
	})
}

// Prefer gives roles to the members that stand by for them, as far as each member gets as many as it was to get: to has
// who that was. Where there are preferences, they decide.
func (x *Exchange) Prefer(roles, to []int32, plan *placement.Plan) []int32 {
	if x.look(); x.standbys.IsEmpty() {
		return to
	}
	room := make([]int, plan.Len())
	for c := range room {
		if plan.Candidate(c).Prefs != nil {
			return to
		}
	}
	for _, c := range to {
		if c >= 0 {
			room[c]++
		}
	}
	out := slices.Repeat([]int32{placement.Nobody}, len(to))
	give := func(i, c int) bool {
		if out[i] >= 0 || to[i] < 0 || c < 0 || room[c] == 0 || int(roles[i]) >= plan.Candidate(c).Roles {
			return false
		}
		out[i] = int32(c)
		room[c]--
		return true
	}
	for i, role := range roles {
		give(i, plan.Find(x.standbys.Of(int(role), x.self)))
	}
	for i := range roles {
		give(i, int(to[i]))
	}
	for i := range roles {
		for c := 0; c < len(room) && !give(i, c); c++ {
		}
		if out[i] < 0 {
			out[i] = to[i]
		}
	}
	return out
}
