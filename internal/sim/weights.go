package sim

import (
	"math/rand/v2"

	"github.com/goneli/neli"
)

// drawWeighing decides whether members share out roles by their weights.
func drawWeighing(seed uint64, p plan) bool {
	return rand.New(rand.NewPCG(seed, 47)).IntN(3) == 0 && p.nomination == neli.NominationOpen
}

// weightOf is Config.Weight: few roles are heavy.
func weightOf(role int) int { return 1000 / (1 + role*7%31) }

// levelByWeight reports whether only members of the rank lead anything, and their weights are level: a member that
// leads over an eighth of the mean more than the least has no role light enough to make that difference smaller.
func (w *world) levelByWeight(rank int) bool {
	var sums, lightest []int
	total, least := 0, -1
	for _, p := range w.living() {
		sum, light := 0, 0
		for role := range p.Led() {
			weight := weightOf(role)
			if sum += weight; light == 0 || weight < light {
				light = weight
			}
		}
		if p.rank() < rank {
			if sum > 0 {
				return false
			}
			continue
		}
		sums, lightest = append(sums, sum), append(lightest, light)
		total += sum
		if least < 0 || sum < least {
			least = sum
		}
	}
	for i, sum := range sums {
		if sum-least > total/len(sums)/8 && lightest[i] < sum-least {
			return false
		}
	}
	w.opts.Seen.Count("shared out by weight")
	return true
}
