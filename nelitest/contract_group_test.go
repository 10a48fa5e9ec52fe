package nelitest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

func assignsEvenly(strategy string) func(*testing.T, bench) {
	return func(t *testing.T, w bench) {
		w.create(t, "c", 8)
		ms := make([]*tracked, 3)
		for i := range ms {
			ms[i] = track(t, newMember(t, w.provider, "partition.assignment.strategy", strategy), "c", false)
			time.Sleep(time.Duration(i) * 10 * time.Second)
		}
		seen := map[int]bool{}
		for _, m := range ms {
			ps := m.assigned()
			require.GreaterOrEqual(t, len(ps), 2)
			for _, p := range ps {
				require.False(t, seen[p], "partition %d assigned twice", p)
				seen[p] = true
			}
		}
		require.Len(t, seen, 8)
	}
}

func leaverReplaced(t *testing.T, w bench) {
	w.create(t, "c", 2)
	x := track(t, newMember(t, w.provider), "c", false)
	time.Sleep(10 * time.Second)
	require.Equal(t, []int{0, 1}, x.assigned())
	y := track(t, newMember(t, w.provider), "c", false)
	time.Sleep(10 * time.Second)
	require.Len(t, x.assigned(), 1)
	require.Len(t, y.assigned(), 1)
	x.stop()
	require.NoError(t, x.g.Leave())
	time.Sleep(3 * time.Second) // less than a session
	require.Equal(t, []int{0, 1}, y.assigned())
}

func joinsAgain(t *testing.T, w bench) {
	w.create(t, "c", 1)
	g := newMember(t, w.provider)
	for range 3 {
		m := track(t, g, "c", false)
		time.Sleep(10 * time.Second)
		require.Equal(t, []int{0}, m.assigned())
		m.stop()
		require.NoError(t, g.Leave())
		ev, err := g.Poll(time.Second)
		require.NoError(t, err)
		require.Equal(t, neli.GroupIdle, ev.Kind)
	}
}

func groupReads(t *testing.T, w bench) {
	w.create(t, "c", 2)
	p := newProducer(t, w.provider, nil)
	appendAll(t, p, "c", 0, "old")
	x := track(t, newMember(t, w.provider), "c", true)
	y := track(t, newMember(t, w.provider), "c", true)
	time.Sleep(10 * time.Second)
	appendAll(t, p, "c", 0, "0")
	appendAll(t, p, "c", 1, "1")
	time.Sleep(time.Second)
	for _, m := range []*tracked{x, y} {
		require.Equal(t, []string{fmt.Sprint(m.assigned()[0])}, values(m.read()))
	}
}

func groupNeedsID(t *testing.T, w bench) {
	_, err := w.provider.GroupConsumer(map[string]string{}, discard)
	require.Error(t, err)
}
