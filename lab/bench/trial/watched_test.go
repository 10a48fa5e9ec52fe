package trial

import (
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/nursery"
)

// Members and sentinels are processes of this program.
func TestMain(m *testing.M) {
	commands := map[string]func() error{MemberCommand: member.Main, peers.SentinelCommand: peers.SentinelMain}
	if len(os.Args) == 2 && commands[os.Args[1]] != nil {
		_, _ = os.Stderr.WriteString(commands[os.Args[1]]().Error() + "\n")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// The trials of groups with a sentinel, once each, on logs that need no broker.
func TestTrialsBesideASentinel(t *testing.T) {
	processes, err := nursery.New("")
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "neli-bench-") // the path of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() {
		processes.Close()
		assert.NoError(t, os.RemoveAll(dir))
	})
	var system peers.System
	for _, s := range peers.Beds() {
		for _, s := range s.Systems {
			if s.Sentinel && s.Inside {
				system = s
			}
		}
	}
	require.NotZero(t, system.Lease)
	var r Results
	for name, kind := range map[string]peers.Kind{"a": peers.Kill, "b": peers.Both} {
		g := NewGroup(peers.Place{Nursery: processes, Dir: dir}, system, nil, name, sampling(system.Lease), new(sync.Mutex))
		t.Cleanup(g.Close)
		require.NoError(t, g.Ready(t.Context(), peers.Size))
		require.NoError(t, g.Do(t.Context(), kind, &r))
	}
	require.Len(t, r.Killed, 1)
	require.Len(t, r.Both, 1)
	t.Logf("killed → next leader: %.0f ms beside a sentinel, %.0f ms when both are killed", r.Killed[0], r.Both[0])
	assert.Less(t, r.Killed[0], measure.Milliseconds(system.Lease)/2, "round trips, on a busy machine")
	assert.Greater(t, r.Both[0], measure.Milliseconds(system.Lease)/2, "its lease has to run out")
}
