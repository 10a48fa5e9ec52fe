package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/stretchr/testify/require"
)

func TestWhatMayBeMoved(t *testing.T) {
	young, old := at(time.Hour-balance.MinTenure+1).Mono, at(time.Hour-balance.MinTenure).Mono
	now := at(time.Hour)
	for name, c := range map[string]struct {
		hold
		movable, tenured bool
	}{
		"what was claimed":        {hold{cause: vacancy.Claimed, since: young}, true, false},
		"what was moved lately":   {hold{cause: vacancy.Rebalanced, since: young}, false, true},
		"what was moved long ago": {hold{cause: vacancy.Rebalanced, since: old}, true, false},
		"what was given to stay":  {hold{cause: vacancy.Transferred, since: old}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.movable, c.hold.movable(now))
			require.Equal(t, c.tenured, c.hold.tenured(now))
		})
	}
}
