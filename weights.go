package neli

import (
	"fmt"

	"github.com/goneli/neli/internal/placement"
)

// maxWeight bounds a weight so that the sum of maxRoles weights cannot overflow.
const maxWeight = 1_000_000

// weigh asks Config.Weight for the weight of each role below a number. It returns nil where weights have no effect. If a
// weight is out of bounds, weigh returns that weight and the rule.
func (s *settings) weigh(roles int) (weights *placement.Weights, wrong int, rule string) {
	if s.Weight == nil || s.Observer || s.Mode != Exclusive || s.Nomination != NominationOpen {
		return nil, 0, ""
	}
	of := make([]int32, roles)
	for role := range of {
		weight := s.Weight(role)
		if weight < 1 || weight > maxWeight {
			return nil, weight, fmt.Sprintf("of role %d must be between 1 and %d", role, maxWeight)
		}
		of[role] = int32(weight)
	}
	return placement.NewWeights(of), 0, ""
}

// checkWeights calls Config.Weight, unless R is at fault itself.
func (s *settings) checkWeights(f *faults) {
	if f.has("Roles") {
		return
	}
	weights, wrong, rule := s.weigh(s.Roles)
	s.weights = weights
	f.check(rule == "", "Weight", wrong, rule)
}
