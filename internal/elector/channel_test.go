package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// After a stall all processes may claim again, so this one waits a moment. It waits for Hellos, too,
// since it no longer knows who is there.
func TestTimelyHelloEndsAStall(t *testing.T) {
	k := newRooms(1, 2, func(s *Settings) { s.Random = func(d time.Duration) time.Duration { return d - 1 } })
	k.begin()
	k.now = k.now.Add(time.Minute)
	c := k.channels[0]
	back := func(kind lease.Kind, sent clock.Instant) {
		r := c.Word(kind, k.now)
		stalls(c)
		c.Pacing, k.startup = vacancy.Pacing{}, vacancy.NewStartup(k.set.T)
		k.back(k.shards.of(c.Index), c, &r, sent, k.now)
	}
	back(lease.Hello, k.now.Add(-time.Millisecond))
	require.False(t, c.Link.IsStalled())
	require.Equal(t, k.now.Mono.Add(clock.Behind(k.set.T)), c.Pacing.ClaimsAt())
	require.True(t, k.startup.End(2, false) > k.now.Mono)
	back(lease.Pong, k.now.Add(-time.Millisecond))
	require.False(t, c.Link.IsStalled())
	require.Zero(t, c.Pacing.ClaimsAt(), "a Pong answers one holder")
	back(lease.Hello, k.now.Add(-clock.Stalled(k.set.T)))
	require.True(t, c.Link.IsStalled(), "it came back too late")
	back(lease.Hello, clock.Instant{})
	require.True(t, c.Link.IsStalled(), "nobody knows how late it came")
	back(lease.Release, k.now)
	require.True(t, c.Link.IsStalled(), "a Release says nothing of the way")
	require.Equal(t, uint64(4), k.counts.RoundTrips.Count)

	c.Pacing = vacancy.Pacing{}
	claim := c.Word(lease.Claim, k.now)
	k.back(k.shards.of(c.Index), c, &claim, clock.Instant{}, k.now)
	require.NotZero(t, c.Pacing.ClaimsAt(), "a Claim that came late is no success")
	k.back(k.shards.of(c.Index), c, &claim, k.now.Add(-3*time.Millisecond), k.now)
	require.Zero(t, c.Pacing.ClaimsAt())
	require.Equal(t, k.now.Mono.Add(3*time.Millisecond), c.Pacing.ThinksAt(), "others' Claims arrive within as long")
}

// A contradiction is counted, and answered by a Snapshot with this process's fold.
func TestContradictionIsAnsweredByASnapshot(t *testing.T) {
	k := newRooms(1, 1, nil)
	k.begin()
	c := k.channels[0]
	k.joined("b", 1)
	r := k.from("b", 0, lease.Record{Kind: lease.Beat})
	k.doubt(k.shards.of(c.Index), c, lease.Event{}, Entry{}, &r, k.now)
	require.Zero(t, k.counts.Contradictions)
	k.doubt(k.shards.of(c.Index), c, lease.Event{Differs: true, Doubts: true}, Entry{Offset: 7}, &r, k.now)
	require.Equal(t, uint64(1), k.counts.Contradictions)
	require.True(t, c.Announcements.Answers())
	require.Empty(t, k.counts.Diverged, "it may be this one that is wrong")
	k.doubt(k.shards.of(c.Index), c, lease.Event{Confirmed: true}, Entry{Offset: 8}, &r, k.now)
	require.Equal(t, "b", k.counts.Diverged)

	k = newRooms(1, 1, func(s *Settings) { s.Observer = true })
	k.begin()
	k.doubt(k.shards.of(k.channels[0].Index), k.channels[0], lease.Event{Differs: true, Doubts: true}, Entry{Offset: 7}, &r, k.now)
	require.Equal(t, uint64(1), k.counts.Contradictions)
	require.False(t, k.channels[0].Announcements.Answers(), "an observer writes nothing")
	require.Empty(t, k.nameOf("b"), "nobody knows its name")
}

// A process whose roles another one has claimed is suspected of having died, unless there is another explanation.
func TestReplacedHolderIsSuspected(t *testing.T) {
	for name, c := range map[string]struct {
		logs  int
		by    string
		heard time.Duration // since b was last heard
		stall bool
		want  bool
	}{
		"by another":                       {1, "c", 10 * time.Millisecond, false, true},
		"by itself":                        {1, "b", time.Minute, false, false},
		"while the log stood still":        {1, "c", time.Minute, true, false},
		"on one small log, long silent":    {3, "c", time.Minute, false, true},
		"on one small log, heard on other": {3, "c", 10 * time.Millisecond, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newRooms(c.logs, 1, func(s *Settings) { s.Majority = c.logs > 1 })
			k.begin()
			k.joined("b", 1)
			ch := k.channels[0]
			if c.stall {
				stalls(ch)
			}
			k.now = k.now.Add(c.heard)
			r := k.from(c.by, 0, lease.Record{Kind: lease.Claim})
			k.shards.of(ch.Index).outlived(ch, []lease.Session{session("b"), session("unknown")}, &r, k.told(k.now), k.now)
			require.Equal(t, c.want, k.members.Suspected("b"))
		})
	}
}

// One of three processes has misread a Claim. The holder's Beat shows it that folds differ. All write
// a Snapshot, the process that has misread is outvoted, and no other gives anything up.
func TestProcessThatMisreadRejoinsAlone(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nil)
	w.pass(10 * time.Second)
	b, c := w.start("b", 1, nil), w.start("c", 1, nil)
	w.pass(10 * time.Second)
	require.Equal(t, []int{0}, a.leads(1))
	c.misread = &lease.Record{Kind: lease.Claim, Name: "b"}
	a.want(Desired{Roles: 1})
	c.want(Desired{Roles: 1})
	w.pass(5 * time.Second)
	require.Nil(t, c.misread, "b has claimed")
	require.Equal(t, []int{0}, b.leads(1), "the healthy one lost its term")
	w.pass(15 * time.Second)

	require.True(t, c.channels[0].Log.Known())
	h, held := c.Holder(0, w.instant())
	require.True(t, held)
	require.Equal(t, "b", h.Name, "a wrong fold lives on")
	require.Equal(t, 1, c.noted("own state contradicts that of most others: rejoining"), "the wrong one is not told by two others")
	require.Equal(t, uint64(1), c.Stats(w.instant()).LogResets)
	for _, healthy := range []*actor{a, b} {
		s := healthy.Stats(w.instant())
		require.Zero(t, s.LogResets, "%s rejoins, too", healthy.set.Name)
		require.Equal(t, "c", s.Diverged)
		require.Equal(t, uint64(1), s.Contradictions)
		require.Equal(t, 1, healthy.noted("own state is confirmed by others: the process that contradicts it has to rejoin"))
	}
	require.Equal(t, []int{0}, b.leads(1), "the healthy one lost its term")
	require.Equal(t, uint64(1), b.Stats(w.instant()).Terms.Started)

	snapshots := 0
	for _, x := range []*actor{a, b, c} {
		for _, said := range x.said {
			if said.at > 20*time.Second && said.Kind == lease.Snapshot {
				snapshots++
			}
		}
	}
	require.LessOrEqual(t, snapshots, 5, "one of each, and one for who rejoins")
}

// noted is how often a line was logged.
func (a *actor) noted(text string) (n int) {
	for _, note := range a.notes {
		if note.Text == text {
			n++
		}
	}
	return n
}
