package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Each kind occurs as often as asked, once in each round, at a leader. It lasts until the others may have noticed.
func TestFailOvers(t *testing.T) {
	const n, timeout = 5, 2 * time.Second
	all := slices.Collect(FailOvers(n, timeout, size.Roles))
	kinds := FailOverKinds()
	assert.Len(t, all, n*len(kinds))
	struck := map[int]bool{}
	for i, s := range all {
		p := s.Parts[0]
		assert.Equal(t, kinds[i%len(kinds)], s.Kind)
		assert.True(t, p.Leader && len(s.Parts) == 1 && p.Mode == 0 && !s.Impatient, "%+v", s)
		assert.Equal(t, p.Action.DisturbsBrokers() || p.Action == CutMemberOne, p.OfLog, "%+v", s)
		assert.GreaterOrEqual(t, p.Hold, 2*timeout)
		if p.Action.DisturbsBrokers() {
			assert.Greater(t, p.Hold, BrokerSession+5*time.Second, "%+v", s)
		}
		struck[p.Role] = true
	}
	assert.Len(t, struck, size.Roles)
	assert.Less(t, all[0].Quiet, all[len(all)-1].Quiet, "at another moment between two heartbeats")
}
