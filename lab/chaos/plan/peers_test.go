package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A majority of the logs is never away, and a log that was restarted counts again before the next step.
func TestPeersKeepAMajority(t *testing.T) {
	for seed := range uint64(50) {
		all := take(PeerSteps(seed, size, 2*time.Second), 40)
		assert.Equal(t, all, take(PeerSteps(seed, size, 2*time.Second), 40))
		for _, s := range all {
			away := 0
			for _, p := range s.Parts {
				assert.False(t, p.Action.DisturbsBrokers(), "%+v: there are none", s)
				assert.Less(t, p.To, size.Members)
				switch p.Action {
				case KillMember, StopMember, CutMember:
					away++
				case Split:
					away += 2
				case RestartMembers:
					away += p.Count
				default:
				}
			}
			assert.LessOrEqual(t, away, 2, "%+v", s)
			assert.GreaterOrEqual(t, s.Quiet, 3*time.Second)
		}
	}
}
