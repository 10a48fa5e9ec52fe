package trial

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/witness"
)

// led is a candidate with these runs of leadership. The last one goes on if open.
func led(open bool, runs ...witness.Run) *candidate {
	c := &candidate{}
	for i, r := range runs {
		c.track = append(c.track, r)
		if open && i == len(runs)-1 {
			continue
		}
		end := witness.Window{Before: r.Last.After, After: r.Last.After}
		c.track = append(c.track, witness.Run{Answer: witness.No, First: end, Last: end})
	}
	return c
}

func run(from, to time.Duration) witness.Run {
	return witness.Run{Answer: witness.NoToken, First: witness.Window{Before: from, After: from}, Last: witness.Window{Before: to, After: to}}
}

func of(present ...*candidate) *Group {
	return &Group{calm: &sync.Mutex{}, changed: make(chan struct{}), present: present}
}

func TestAwaitLeader(t *testing.T) {
	old, out := led(true, run(15, 20)), led(true, run(12, 20))
	out.out = true
	first, second, former := led(false, run(14, 16)), led(true, run(18, 20)), led(false, run(1, 5))
	g := of(old, out, second, first, former)

	found, r, err := g.awaitLeader(t.Context(), 10, old)
	require.NoError(t, err)
	assert.Same(t, first, found, "the first that began since, even if it leads no more")
	assert.EqualValues(t, 14, r.First.After)

	now, err := g.leader(t.Context())
	require.NoError(t, err)
	assert.Same(t, old, now, "it leads now, and is not out")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = g.awaitLeader(ctx, 30, nil)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestChangesWakeWaiters(t *testing.T) {
	g := of(led(false))
	go g.note(func() { g.present[0].track.Add(measure.Sample{Asked: 4, At: 5, Leads: true}) })
	found, r, err := g.awaitLeader(t.Context(), 0, nil)
	require.NoError(t, err)
	assert.Same(t, g.present[0], found)
	assert.EqualValues(t, 5, r.First.After)
}

func TestOverlapsLeaveOutWokenLeaders(t *testing.T) {
	woken := led(false, run(0, 10))
	woken.track = measure.Track{run(0, 10), run(30, 31)} // it was stopped between
	g := of(woken, led(true, run(20, 40)), led(false, run(5, 7)))
	g.past = []measure.Track{{run(50, 60)}}
	terms, overlaps := g.overlaps()
	assert.Equal(t, 5, terms)
	assert.Equal(t, 1, overlaps, "5 to 7; not 30 to 31, which is reported as a wake")
}

// Members and sentinels are processes of this program.
func TestMain(m *testing.M) {
	commands := map[string]func() error{MemberCommand: member.Main, peers.SentinelCommand: peers.SentinelMain}
	if len(os.Args) == 2 && commands[os.Args[1]] != nil {
		_, _ = os.Stderr.WriteString(commands[os.Args[1]]().Error() + "\n")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Each trial runs once, in a group that needs no broker.
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
