package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// A channel notes what depends on a record when it hands the record over.
func TestAChannelRemembersWhatItHandsOver(t *testing.T) {
	for _, c := range []struct {
		r                   lease.Record
		farewells, releases int
		beats, beat, hello  bool // the next Beat is put off; its way back is watched
	}{
		{lease.Record{Kind: lease.Beat}, 0, 0, true, true, false},
		{lease.Record{Kind: lease.Claim}, 0, 0, true, true, false},
		{lease.Record{Kind: lease.Release}, 1, 1, false, false, false},
		{lease.Record{Kind: lease.Snapshot}, 1, 0, false, false, false},
		{lease.Record{Kind: lease.Hello, Hello: &lease.Announcement{}}, 0, 0, false, false, true},
		{lease.Record{Kind: lease.Hello, Hello: &lease.Announcement{Leaving: true}}, 1, 0, false, false, true},
		{lease.Record{Kind: lease.Ping}, 0, 0, false, false, false},
		{lease.Record{Kind: lease.Pong, Hello: &lease.Announcement{}}, 0, 0, false, false, false},
	} {
		k := newRooms(1, 1, nil)
		ch := k.channels[0]
		ch.id, c.r.Seq = "x", 9
		ch.append(k.told(k.now), c.r)
		k.flush()
		require.Equal(t, []Append{{Partition: 0, ID: "x", Record: c.r}}, k.ready.Append)
		require.Equal(t, c.farewells == 0, k.closing.NothingSent(), "%s", c.r.Kind)
		require.Equal(t, c.releases, ch.releasing)
		require.Equal(t, c.beats, ch.beatAt == k.now.Mono.Add(k.set.HeartbeatInterval))
		require.Equal(t, c.beat, ch.link.Beating(k.now, k.set.T))
		require.Equal(t, c.hello, ch.link.Probing(k.now, k.set.T))
	}
}

func TestAChannelRepeatsItsReleases(t *testing.T) {
	k, s := leading(t, 2, nil)
	c := s.main
	s.giveBack([]int32{1}, nil, 0, k.told(k.now))
	require.Equal(t, []lease.Kind{lease.Release}, kinds(k.out()))
	again := func(d time.Duration) int {
		k.shards.of(c.index).repeat(c, k.told(k.now.Add(d)))
		return len(k.out())
	}
	resend := clock.Resend(k.set.T)
	require.Zero(t, again(time.Hour), "there is no report of the first one")
	c.releasing = 0
	require.Zero(t, again(resend-1))
	require.Equal(t, 1, again(resend))
	require.Zero(t, again(time.Hour))
	for i := range 3 {
		c.releasing, c.releaseAt = 0, 0
		require.Equal(t, 1, again(0))
		require.Equal(t, k.now.Mono.Add(resend), c.releaseAt, "repeat %d: it still holds a role", i)
	}
	s.giveBack([]int32{0}, nil, 0, k.told(k.now))
	k.out()
	for i := range maxRepeats + 2 {
		c.releasing, c.releaseAt = 0, 0
		require.Positive(t, again(0))
		require.Equal(t, resend<<min(i+1, maxRepeats), c.releaseAt.Sub(k.now.Mono), "it holds nothing: less and less often")
	}
	c.released(k.now)
	require.Zero(t, c.repeats, "a new Release is repeated soon again")
	require.Equal(t, k.now.Mono.Add(resend), c.releaseAt)
	c.releasing, c.releaseAt = 0, 0
	for log := range k.channels {
		k.read(log, s.leases.Unreleased(log, k.now)[0])
	}
	require.False(t, s.logs[0].log.Owing())
	require.Zero(t, again(time.Hour), "it was read back")
}

// After a stall this process may claim a moment later, as all others may, and knows no longer who
// is there.
func TestAChannelThatWorksAgain(t *testing.T) {
	k := newRooms(1, 2, func(s *Settings) { s.Random = func(d time.Duration) time.Duration { return d - 1 } })
	k.begin()
	k.now = k.now.Add(time.Minute)
	c := k.channels[0]
	back := func(kind lease.Kind, sent clock.Instant) {
		r := c.word(kind, k.now)
		c.stalls()
		c.pacing, k.startup = vacancy.Pacing{}, vacancy.NewStartup(k.set.T)
		k.back(k.shards.of(c.index), c, &r, sent, k.now)
	}
	back(lease.Hello, k.now.Add(-time.Millisecond))
	require.False(t, c.link.IsStalled())
	require.Equal(t, k.now.Mono.Add(clock.Behind(k.set.T)), c.pacing.ClaimsAt())
	require.True(t, k.startup.End(2, false) > k.now.Mono)
	back(lease.Pong, k.now.Add(-time.Millisecond))
	require.False(t, c.link.IsStalled())
	require.Zero(t, c.pacing.ClaimsAt(), "a Pong answers one holder")
	back(lease.Hello, k.now.Add(-clock.Stalled(k.set.T)))
	require.True(t, c.link.IsStalled(), "it came back too late")
	back(lease.Hello, clock.Instant{})
	require.True(t, c.link.IsStalled(), "nobody knows how late it came")
	back(lease.Release, k.now)
	require.True(t, c.link.IsStalled(), "a Release says nothing of the way")
	require.Equal(t, uint64(4), k.counts.RoundTrips.Count)

	c.pacing = vacancy.Pacing{}
	claim := c.word(lease.Claim, k.now)
	k.back(k.shards.of(c.index), c, &claim, clock.Instant{}, k.now)
	require.NotZero(t, c.pacing.ClaimsAt(), "a Claim that came late is no success")
	k.back(k.shards.of(c.index), c, &claim, k.now.Add(-3*time.Millisecond), k.now)
	require.Zero(t, c.pacing.ClaimsAt())
	require.Equal(t, k.now.Mono.Add(3*time.Millisecond), c.pacing.ThinksAt(), "others' Claims arrive within as long")
}

func TestAChannelLooksBackOnce(t *testing.T) {
	k := newRooms(1, 1, nil)
	c := k.channels[0]
	c.log.Begin(5, false, k.now)
	c.restart(5, k.now)
	require.Equal(t, clock.Mono(clock.Never), c.lookBackAt(k.told(k.now)), "it is not read to its end")
	c.log.Skip(5, k.now)
	c.lookBack(k.told(k.now))
	k.flush()
	require.Empty(t, k.ready.Back, "others may answer")
	due := c.lookBackAt(k.told(k.now))
	require.Equal(t, k.now.Mono.Add(clock.StartupWait(k.set.T)), due)
	c.announcements.BeganBack(true, false)
	require.Equal(t, k.now.Mono.Add(clock.Behind(k.set.T)), c.lookBackAt(k.told(k.now)), "the next time there is more to read")
	c.announcements.BeganBack(false, false)
	k.joined("b", 1)
	k.joined("c", 1)
	k.joined("d", 1)
	require.Equal(t, due.Add(k.told(k.now).Turn(0)), c.lookBackAt(k.told(k.now)), "members take turns")
	later := k.now.Add(k.set.T)
	c.lookBack(k.told(later))
	c.lookBack(k.told(later.Add(time.Hour)))
	k.flush()
	require.Equal(t, []int{0}, k.ready.Back)
	require.Equal(t, clock.Mono(clock.Never), c.lookBackAt(k.told(later)))

	c.announcements.MayGoBackAgain()
	c.shallow = true
	c.lookBack(k.told(later))
	k.flush()
	require.Len(t, k.ready.Back, 1, "nothing lies farther back")
}

// A contradiction is counted for each process that says so; a Snapshot shows this process's fold.
func TestAChannelInDoubt(t *testing.T) {
	k := newRooms(1, 1, nil)
	k.begin()
	c := k.channels[0]
	k.joined("b", 1)
	r := k.from("b", 0, lease.Record{Kind: lease.Beat})
	k.doubt(k.shards.of(c.index), c, lease.Event{}, Entry{}, &r, k.now)
	require.Zero(t, k.counts.Contradictions)
	k.doubt(k.shards.of(c.index), c, lease.Event{Differs: true, Doubts: true}, Entry{Offset: 7}, &r, k.now)
	require.Equal(t, uint64(1), k.counts.Contradictions)
	require.True(t, c.announcements.Answers())
	require.Empty(t, k.counts.Diverged, "it may be this one that is wrong")
	k.doubt(k.shards.of(c.index), c, lease.Event{Confirmed: true}, Entry{Offset: 8}, &r, k.now)
	require.Equal(t, "b", k.counts.Diverged)

	k = newRooms(1, 1, func(s *Settings) { s.Observer = true })
	k.begin()
	k.doubt(k.shards.of(k.channels[0].index), k.channels[0], lease.Event{Differs: true, Doubts: true}, Entry{Offset: 7}, &r, k.now)
	require.Equal(t, uint64(1), k.counts.Contradictions)
	require.False(t, k.channels[0].announcements.Answers(), "an observer writes nothing")
	require.Empty(t, k.nameOf("b"), "nobody knows its name")
}

// A process whose roles another one has claimed is suspected of having died, unless there is
// another explanation.
func TestWhoIsOutlivedIsSuspected(t *testing.T) {
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
				ch.stalls()
			}
			k.now = k.now.Add(c.heard)
			r := k.from(c.by, 0, lease.Record{Kind: lease.Claim})
			k.shards.of(ch.index).outlived(ch, []lease.Session{session("b"), session("unknown")}, &r, k.told(k.now))
			require.Equal(t, c.want, k.members.Suspected("b"))
		})
	}
}
