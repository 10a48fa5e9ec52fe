package nominate

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/stretchr/testify/require"
)

// A nominee that has read nothing on a partition for 15 s after its Claim, or for 3T if that is longer,
// cannot reach the partition. Anything that it reads there shows that it can.
func TestPartitionSilentAfterAClaimIsUnheard(t *testing.T) {
	g := Nomination{nominated: true}
	require.False(t, g.Unheard(time.Second, at(time.Hour)), "it has claimed nothing")
	g.Claimed(at(0))
	g.Claimed(at(10 * time.Second))
	require.False(t, g.Unheard(time.Second, at(GiveWayAfter-1)))
	require.True(t, g.Unheard(time.Second, at(GiveWayAfter)))
	require.False(t, g.Unheard(10*time.Second, at(30*time.Second-1)))
	require.True(t, g.Unheard(10*time.Second, at(30*time.Second)))
	g.Heard()
	require.False(t, g.Unheard(time.Second, at(time.Hour)))
	g.Claimed(at(0))
	g.nominated = false
	require.False(t, g.Unheard(time.Second, at(time.Hour)), "others are nominated")
}

// After an outage that ended the nomination, a process is nominated before its reader has recovered. It must not leave the
// group because of Claims that failed in the outage.
func TestClaimsOfAnEarlierNominationDoNotCount(t *testing.T) {
	g := Nomination{nominated: true}
	g.Claimed(at(0))
	g.Nominate(false, true, false, at(10*time.Second))
	g.Nominate(true, false, false, at(time.Minute))
	require.False(t, g.Unheard(time.Second, at(time.Minute)))
	g.Claimed(at(time.Minute))
	require.False(t, g.Unheard(time.Second, at(time.Minute+15*time.Second-1)))
	require.True(t, g.Unheard(time.Second, at(time.Minute+15*time.Second)))
}

var at = clock.HourAnd // an instant after the beginning of a test
