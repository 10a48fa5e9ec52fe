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

// Trials of a group that needs no broker, once each.
func TestTrials(t *testing.T) {
	processes, err := nursery.New("")
	require.NoError(t, err)
	t.Cleanup(processes.Close)
	beds := peers.Beds()
	system := beds[len(beds)-1].Systems[0]
	require.Equal(t, "neli, peers, T = 1s", system.Name())
	var r Results
	g := NewGroup(peers.Place{Nursery: processes, Dir: t.TempDir()}, system, nil, "a", sampling(system.Lease), new(sync.Mutex))
	t.Cleanup(g.Close)
	require.NoError(t, g.Ready(t.Context(), peers.Size))
	for _, kind := range []peers.Kind{peers.Kill, peers.Stop, peers.Hand, peers.Restart} {
		require.NoError(t, g.Do(t.Context(), kind, &r), kind)
	}
	lease := measure.Milliseconds(system.Lease)
	for _, took := range [][]float64{r.Killed, r.Stopped} {
		require.Len(t, took, 1)
		assert.Greater(t, took[0], lease/2, "its lease has to run out")
	}
	require.Len(t, r.Gap, 1)
	assert.Less(t, r.Gap[0], lease/2, "round trips, on a busy machine")
	assert.Len(t, r.Restarted, 1)
	assert.Zero(t, r.WokenLed)
}
