package elector

import (
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// knownStandings is the standings of one log in which b holds role 0 with a lease of a second; the log
// ended at end when reading began.
func knownStandings(t *testing.T, end int64) (*standings, *kept) {
	l := &oneLog{Lease: lease.New(lease.Rules{Process: "a", Name: "a", T: time.Second, History: announce.History}), t: time.Second}
	k := &kept{l, at(0), make([]int64, 1)}
	k.Begin(0, Entry{Reset: true, Whole: true, End: end}, k.now)
	require.True(t, k.read(0, k.from(0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}})).Known)
	return &standings{lease: l, logs: []*channel{caught(&channel{end: end}, k.now)}}, k
}

// caught lets the records be read that were in a log when reading began.
func caught(c *channel, now clock.Instant) *channel {
	c.announcements.CatchUp(true, 0, now)
	return c
}

func TestWhatIsKnownOfARole(t *testing.T) {
	s, k := knownStandings(t, 0)
	standing := func(local int32, now clock.Instant) int64 {
		token, _ := s.standing(local, now)
		return token
	}
	require.Equal(t, int64(0), standing(0, k.now), "its holder's token")
	require.Equal(t, vacantToken, standing(1, k.now))
	require.Equal(t, vacantToken, standing(1<<20, k.now), "nobody has ever held it")
	g, _ := s.lease.Holder(0)
	free := k.now.Add(g.FreeAt.Sub(k.now.Raw))
	require.Equal(t, int64(0), standing(0, free.Add(-1)))
	require.Equal(t, vacantToken, standing(0, free), "its lease is over by any clock")

	s.logs[0].announcements.Reset(k.now)
	require.Equal(t, unknownToken, standing(1, k.now), "a later record may show a holder")
	require.Equal(t, int64(0), standing(0, k.now), "a holder is known all the same")
	caught(s.logs[0], k.now)

	k.Read(0, k.ends[0], nil, lease.ErrNewer, k.now)
	require.Equal(t, unknownToken, standing(1, k.now), "a newer version may hold it")
	k.Begin(0, Entry{Reset: true, Offset: 5, End: 5}, k.now)
	require.Equal(t, unknownToken, standing(0, k.now), "nothing is known")
}

// Nobody knows how old the evidence is that was in the log when reading began.
func TestOldEvidenceSaysNothing(t *testing.T) {
	s, k := knownStandings(t, 1)
	token, g := s.standing(0, k.now)
	require.Equal(t, unknownToken, token)
	require.True(t, s.old(g.Last))
	s.logs = append(s.logs, &channel{}, &channel{})
	require.False(t, s.old(g.Last), "the offsets of several logs say nothing")
	s.logs = s.logs[:1]

	shown := s.basis(0, k.now)
	s.learned()
	s.unheard.heard(session("b"), false)
	require.Equal(t, shown, s.basis(0, k.now), "it is known already that nothing is known of it")
	k.read(0, k.from(0, lease.Record{Kind: lease.Beat}))
	s.unheard.heard(session("b"), true)
	token, _ = s.standing(0, k.now)
	require.Equal(t, int64(0), token)
	require.NotEqual(t, shown, s.basis(0, k.now), "that is announced")
	shown = s.basis(0, k.now)
	s.unheard.heard(session("b"), true)
	require.Equal(t, shown, s.basis(0, k.now), "once")
}

// A session may appear in the history only after the holders have become known.
func TestUnheardHolders(t *testing.T) {
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

func TestTheBasisOfStandings(t *testing.T) {
	s, k := knownStandings(t, 0)
	shown := s.basis(3, k.now)
	require.NotEqual(t, shown, s.basis(4, k.now), "a holder was found silent")
	s.logs[0].announcements.Reset(k.now)
	require.NotEqual(t, shown, s.basis(3, k.now))
	caught(s.logs[0], k.now)
	require.Equal(t, shown, s.basis(3, k.now))
	k.Read(0, k.ends[0], nil, lease.ErrNewer, k.now)
	require.NotEqual(t, shown, s.basis(3, k.now), "vacant roles may be held by a newer version")
	later := k.now.Add(2 * clock.Tmax)
	require.Equal(t, shown.free, s.basis(3, later).free, "and time ends that")
}

func TestRolesOfSomeSessions(t *testing.T) {
	s, k := knownStandings(t, 0)
	k.read(0, k.from(0, lease.Record{Kind: lease.Claim, Roles: []int32{2, 5}}))
	r := k.from(0, lease.Record{Kind: lease.Claim, Roles: []int32{1}})
	r.Session, r.Name = session("c"), "c"
	k.read(0, r)
	require.Equal(t, []int32{0, 2, 5}, s.heldBy(map[lease.Session]bool{session("b"): true}))
	require.Equal(t, []int32{0, 1, 2, 5}, s.heldBy(map[lease.Session]bool{session("b"): true, session("c"): true}))
	require.Empty(t, s.heldBy(map[lease.Session]bool{session("x"): true}))
	require.Empty(t, s.heldBy(nil))
}
