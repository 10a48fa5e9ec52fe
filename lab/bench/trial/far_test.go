package trial

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/lab/bench/peers"
)

// Roles move round three members, so three times as many trials are needed for n that concern the
// far one.
func TestAFarMemberNeedsMoreTrials(t *testing.T) {
	for far, want := range map[int]int{0: 4, 2: 12} {
		s := &series{system: peers.System{Far: far, Kinds: []peers.Kind{peers.Hand}}}
		assert.Len(t, s.trials(4, peers.Kill, peers.Hand), want)
		g := &Group{system: s.system}
		assert.Equal(t, far == 2, g.far(&candidate{seat: 2}))
		assert.False(t, g.far(&candidate{seat: 0}))
	}
}
