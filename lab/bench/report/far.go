package report

import (
	"fmt"
	"slices"

	"github.com/goneli/neli/lab/bench/measure"
)

// mixed reports whether one member is farther from the servers than the others.
func (s System) mixed() bool {
	return s.Results != nil && len(s.ToFar)+len(s.FromFar)+len(s.FarKilled) > 0
}

// far are the groups with a far member.
func (r *Results) far() []System {
	return slices.DeleteFunc(slices.Clone(r.Systems), func(s System) bool { return !s.mixed() })
}

// counted is a spread with its n.
func counted(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return fmt.Sprintf("%s, n = %d", cell(values), measure.SpreadOf(values).N)
}
