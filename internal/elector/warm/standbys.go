package warm

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/placement"
)

// Toward returns a plan whose moves for balance prefer the members that stand by for the roles.
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

// Prefer gives roles to the members that stand by for them. Each member still gets about as much as by to. If
// there are preferences, or caps on roles that have weights, to stays as it is.
func (x *Exchange) Prefer(roles, to []int32, plan *placement.Plan) []int32 {
	if x.look(); x.standbys.IsEmpty() {
		return to
	}
	room := make([]int64, plan.Len()) // of weight
	for c := range room {
		if is := plan.Candidate(c); is.Prefs != nil || is.Max > 0 && plan.IsWeighted() {
			return to
		}
	}
	for i, c := range to {
		if c >= 0 {
			room[c] += plan.Weight(int(roles[i]))
		}
	}
	out, order := slices.Repeat([]int32{placement.Nobody}, len(to)), make([]int, len(roles))
	for i := range order {
		order[i] = i
	}
	if plan.IsWeighted() {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(plan.Weight(int(roles[b])), plan.Weight(int(roles[a]))) })
	}
	give := func(i, c int) bool {
		weight := plan.Weight(int(roles[i]))
		if out[i] >= 0 || to[i] < 0 || c < 0 || room[c] < weight || int(roles[i]) >= plan.Candidate(c).Roles {
			return false
		}
		out[i] = int32(c)
		room[c] -= weight
		return true
	}
	for _, i := range order {
		give(i, plan.Find(x.standbys.Of(int(roles[i]), x.self)))
	}
	for _, i := range order {
		give(i, int(to[i]))
	}
	for _, i := range order {
		for c := 0; c < len(room) && !give(i, c); c++ {
		}
		if out[i] < 0 {
			out[i] = to[i]
		}
	}
	return out
}
