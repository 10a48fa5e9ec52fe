package elector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/lease"
)

// why returns what a process says of its wait at the start.
func (a *actor) why() any {
	for _, note := range a.notes {
		if note.Text == "waiting for the leases of others" {
			return note.Args[3]
		}
	}
	return nil
}

func newOriginWorld(partitions int) *world {
	w := newWorld(partitions)
	w.origins, w.began = true, map[int]string{}
	return w
}

// The first member of a new group leads after a few round trips. Observers learn the fold from its
// Snapshot, since its Claim is not fresh.
func TestFirstLeaderOfANewGroupWaitsForNobody(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		w := newOriginWorld(partitions)
		watcher := w.start("watcher", 1, func(s *Settings) { s.Observer = true })
		a := w.start("a", 1, nil)
		w.pass(100 * time.Millisecond)
		require.Equal(t, []int{0}, a.leads(1))
		w.pass(a.set.T / 10)
		require.True(t, watcher.shards[0].leases.Known(), "no Snapshot tells observers who leads")
		g, held := watcher.shards[0].leases.Holder(0)
		require.True(t, held)
		require.Equal(t, "a", g.Session.Process)
		require.Nil(t, a.why())
		for p := range partitions {
			for _, claim := range w.sent(p, "a", lease.Claim) {
				require.False(t, claim.Fresh)
			}
		}
	}
}

// A member that starts where others lead all roles logs that it waits for its share. If there are more
// members than roles, it has no share.
func TestMemberThatWaitsForItsShareSaysSo(t *testing.T) {
	for roles, want := range map[int]int{1: 0, 2: 1} {
		w := newOriginWorld(1)
		a := w.start("a", roles, nil)
		w.pass(time.Minute)
		b := w.start("b", roles, nil)
		w.pass(10 * time.Second)
		require.Equal(t, want, b.noted("waiting for a share of the roles"))
		require.Zero(t, a.noted("waiting for a share of the roles"))
	}
}

// A member that starts while the first one has claimed everything knows that at once.
func TestSecondMemberOfANewGroupClaimsNothing(t *testing.T) {
	w := newOriginWorld(1)
	w.start("a", 1, nil)
	w.pass(time.Second)
	b := w.start("b", 1, nil)
	w.pass(time.Second)
	require.True(t, b.shards[0].leases.Known())
	require.Empty(t, w.sent(0, "b", lease.Claim))
}

// If it is not certain that nobody led before, the first leader waits for T and says why.
func TestFirstLeaderWaitsUnlessNobodyLedBefore(t *testing.T) {
	for name, c := range map[string]struct {
		partitions int
		before     func(w *world)
		why        string
	}{
		"a broker was away":                      {1, func(w *world) { w.began[0] = "a broker was away" }, "a broker was away"},
		"a broker of another partition was away": {3, func(w *world) { w.began[2] = "a broker was away" }, "a broker was away"},
		"a record names another topic": {1, func(w *world) { w.logs[0] = []lease.Record{{Kind: foreign}} },
			"a record names another topic of this name"},
		"members that know fewer partitions": {2, func(w *world) {
			w.logs[0] = []lease.Record{{Kind: lease.Beat, Session: lease.Session{Process: "x", N: 1}, Read: -1, T: 5 * time.Second, Longest: lease.Unsaid}}
			w.logs[1] = []lease.Record{{Kind: lease.Hello, Session: lease.Session{Process: "y", N: 1}, Read: -1, Longest: lease.Unsaid, Hello: &lease.Announcement{}}}
		}, "another process may hold roles in other partitions"},
		"newer versions in another partition": {2, func(w *world) { w.logs[0] = []lease.Record{{Kind: newer}} },
			"another process may hold roles in other partitions"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newOriginWorld(c.partitions)
			c.before(w)
			a := w.start("a", 2, nil)
			w.pass(4 * time.Second)
			require.Empty(t, a.leads(2), "leads what another process may lead")
			require.Equal(t, c.why, a.why())
		})
	}
}

// Two processes that start together claim half of the roles each. A third one that starts a moment later gets its share
// soon from both.
func TestMembersThatStartTogetherShareOutSoon(t *testing.T) {
	w := newOriginWorld(1)
	a, b := w.start("a", 6, nil), w.start("b", 6, nil)
	w.pass(110 * time.Millisecond)
	require.Len(t, a.leads(6), 3)
	require.Len(t, b.leads(6), 3)
	c := w.start("c", 6, nil)
	w.pass(6 * time.Second)
	require.Len(t, c.leads(6), 2)
	w.pass(time.Minute)
	require.Len(t, w.sent(0, "c", lease.Claim), 2, "one from each")
}
