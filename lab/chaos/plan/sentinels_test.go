package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Each kind of fault of sentinels occurs before any occurs again, alternating with other steps.
func TestEveryKindOfSentinels(t *testing.T) {
	steps := func() []Step {
		return take(SentinelSteps(PeerSteps(3, size, time.Second), 3, size, time.Second), 2*len(sentinelKinds))
	}
	var own []string
	for i, s := range steps() {
		if i%2 == 0 {
			own = append(own, s.Kind)
		} else {
			assert.Contains(t, PeerKinds(), s.Kind)
		}
	}
	assert.ElementsMatch(t, SentinelKinds(), own)
	assert.Equal(t, steps(), steps(), "one seed, one plan")
	assert.NoError(t, CheckSentinels(SentinelKinds(), CheckPeers))
	assert.Error(t, CheckSentinels([]string{"sentinel kiled"}, CheckPeers))
}

// The member that has lost its files lives on like that before it is killed. Other members that a step
// kills twice are back before the second time.
func TestKilledMemberWasDisturbedBefore(t *testing.T) {
	for seed := range uint64(20) {
		for _, s := range take(steps(seed, size, sentinelKinds), 2*len(sentinelKinds)) {
			for i, p := range s.Parts[1:] {
				assert.True(t, p.With, s.Kind)
				assert.Equal(t, KillMember, p.Action, s.Kind)
				if former := s.Parts[i]; former.Action == KillMember {
					assert.Less(t, former.After+former.Hold, p.After, s.Kind)
				}
				assert.Less(t, p.After, s.Parts[0].Hold, "%s: while the first part lasts", s.Kind)
			}
		}
	}
}
