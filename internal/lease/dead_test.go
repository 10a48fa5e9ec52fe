package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
)

func TestReleaseOfRefusesItsOwnSession(t *testing.T) {
	now := clock.Instant{Mono: 1 << 40, Wall: 1 << 40, Raw: 1 << 40}
	l := New(Rules{Process: "a", T: time.Second, History: 64})
	require.Empty(t, l.ReleaseOf(Session{"b", 1}, []int32{0}, now), "nothing is known")
	l.Begin(0, true, now)
	now = now.Add(2 * time.Second)
	claim, ok := l.Claim([]int32{0}, now)
	require.True(t, ok)
	l.Read(0, &claim, now)
	l.Forget([]int32{0})
	require.Empty(t, l.ReleaseOf(l.Session(), []int32{0}, now), "released a role of its own session, whose work may go on")
	require.Empty(t, l.ReleaseOf(Session{"b", 1}, []int32{0}, now), "b holds nothing")
}

// Records in another process's name are well-formed, and their sequence numbers are never used by that process.
func TestAFarewellIsWellFormed(t *testing.T) {
	now := clock.Instant{Mono: 1 << 40, Wall: 1 << 40, Raw: 1 << 40}
	l := New(Rules{Process: "sentinel", T: time.Second, History: 64})
	l.Begin(0, true, now)
	r := l.Farewell("dead", "its name", now)
	codec := Codec{Group: "g", Log: "log"}
	got, err := codec.Decode(codec.Encode(&r))
	require.NoError(t, err)
	require.Equal(t, &r, got)
	require.True(t, got.Hello.Leaving)
	require.NotNil(t, got.Hello.Wants, "it wants nothing, not all")
	require.Equal(t, Session{"dead", foreign}, got.Session)
}
