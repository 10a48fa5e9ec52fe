package observe

import (
	"slices"
	"testing"

	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// A session may appear in the history only after the holders have become known.
func TestHolderHeardForTheFirstTimeIsCounted(t *testing.T) {
	var u unheard
	u.heard(session("b"), false)
	u.heard(session("b"), true)
	require.Zero(t, u.turns, "nothing was told of the holders yet")
	u.begin(slices.Values([]lease.HolderState{{Session: session("b"), Last: 3}, {Session: session("c"), Last: 9}}), func(o int64) bool { return o < 5 })
	u.heard(session("c"), true)
	require.Zero(t, u.turns, "there was evidence of it")
	u.heard(session("b"), true)
	require.Equal(t, uint64(1), u.turns)
	u.heard(session("d"), false)
	u.heard(session("d"), true)
	require.Equal(t, uint64(2), u.turns)
	u.begin(slices.Values([]lease.HolderState{}), nil)
	require.Equal(t, uint64(2), u.turns, "it only grows")
}

func session(process string) lease.Session { return lease.Session{Process: process, N: 1} }
