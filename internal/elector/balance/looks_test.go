package balance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A change while this process does not look, since it is behind or waits, is not forgotten.
func TestAChangeBetweenTwoLooksCounts(t *testing.T) {
	m := &Mover{}
	m.Needless(false, Placed{Holders: 1})
	m.Weigh(nil, func() bool { return false }, at(0))
	require.False(t, m.Needless(false, Placed{Holders: 3}))
	m.Weigh(nil, func() bool { return false }, at(0))
	require.True(t, m.Needless(false, Placed{Holders: 3}))
	m.Resolve(func(Move) Fate { return Fate{} }, time.Hour, at(0))
	require.True(t, m.Needless(false, Placed{Holders: 3}), "no handover has ended")
	m.Await(Move{Role: 1, To: "b"})
	m.Resolve(func(Move) Fate { return Fate{} }, 0, at(time.Hour))
	require.False(t, m.Needless(false, Placed{Holders: 3}), "b is in cooldown now")
}
