package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// heard is the leases of one log, from which what b writes is read.
type heard struct {
	*leases.One
	now clock.Instant
	end int64
}

func (h *heard) read(r lease.Record, bad error) leases.Outcome {
	r.Session, r.Name, r.T, r.Longest, r.Read, r.Seq = session("b"), "b", time.Second, lease.Unsaid, h.end-1, uint64(h.end+1)
	h.end++
	return h.Read(0, Entry{Offset: h.end - 1}, &r, bad, h.now)
}

// knownStandings is the standings of one log in which b holds role 0 with a lease of a second; the log
// ended at end when reading began.
func knownStandings(t *testing.T, end int64) (*observe.Standings, *channels, *heard, *vacancy.Claims) {
	l := leases.NewOne(lease.Rules{Process: "a", Name: "a", T: time.Second}, 0)
	k := &heard{l, at(0), 0}
	k.Read(0, Entry{Reset: true, Whole: true, End: end}, nil, nil, k.now)
	require.True(t, k.read(lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}}, nil).Known)
	logs := &channels{caught(&channel{end: end}, k.now)}
	silences := &vacancy.Claims{}
	silences.Init()
	s := observe.NewStandings(byrole.Numbering{Of: 1}, l, l, leases.OneTraits.Tenure, logs, silences)
	return &s, logs, k, silences
}

// caught lets the records be read that were in a log when reading began.
func caught(c *channel, now clock.Instant) *channel {
	c.announcements.CatchUp(true, 0, now)
	return c
}

func TestWhatIsKnownOfARole(t *testing.T) {
	s, logs, k, _ := knownStandings(t, 0)
	standing := func(local int32, now clock.Instant) int64 {
		token, _ := s.Standing(local, now)
		return token
	}
	require.Equal(t, int64(0), standing(0, k.now), "its holder's token")
	require.Equal(t, observe.VacantToken, standing(1, k.now))
	require.Equal(t, observe.VacantToken, standing(1<<20, k.now), "nobody has ever held it")
	g, _ := k.Holder(0)
	free := k.now.Add(g.FreeAt.Sub(k.now.Raw))
	require.Equal(t, int64(0), standing(0, free.Add(-1)))
	require.Equal(t, observe.VacantToken, standing(0, free), "its lease is over by any clock")

	(*logs)[0].announcements.Reset(k.now)
	require.Equal(t, observe.UnknownToken, standing(1, k.now), "a later record may show a holder")
	require.Equal(t, int64(0), standing(0, k.now), "a holder is known all the same")
	caught((*logs)[0], k.now)

	k.read(lease.Record{}, lease.ErrNewer)
	require.Equal(t, observe.UnknownToken, standing(1, k.now), "a newer version may hold it")
	k.Read(0, Entry{Reset: true, Offset: 5, End: 5}, nil, nil, k.now)
	require.Equal(t, observe.UnknownToken, standing(0, k.now), "nothing is known")
}

// Nobody knows how old the evidence is that was in the log when reading began.
func TestOldEvidenceSaysNothing(t *testing.T) {
	s, logs, k, _ := knownStandings(t, 1)
	token, g := s.Standing(0, k.now)
	require.Equal(t, observe.UnknownToken, token)
	require.True(t, logs.Old(g.Last))
	*logs = append(*logs, &channel{}, &channel{})
	require.False(t, logs.Old(g.Last), "the offsets of several logs say nothing")
	*logs = (*logs)[:1]

	s.Changed(k.now)
	s.Learned()
	s.Heard(session("b"), false)
	require.False(t, s.Changed(k.now), "it is known already that nothing is known of it")
	k.read(lease.Record{Kind: lease.Beat}, nil)
	s.Heard(session("b"), true)
	token, _ = s.Standing(0, k.now)
	require.Equal(t, int64(0), token)
	require.True(t, s.Changed(k.now), "that is announced")
	s.Heard(session("b"), true)
	require.False(t, s.Changed(k.now), "once")
}

func TestTheBasisOfStandings(t *testing.T) {
	s, logs, k, silences := knownStandings(t, 0)
	s.Changed(k.now)
	require.False(t, s.Changed(k.now))
	silences.SaidSilent(session("b"))
	require.True(t, silences.Revived(session("b")))
	require.True(t, s.Changed(k.now), "a holder was heard that had been called silent")
	(*logs)[0].announcements.Reset(k.now)
	require.True(t, s.Changed(k.now))
	caught((*logs)[0], k.now)
	require.True(t, s.Changed(k.now))
	k.read(lease.Record{}, lease.ErrNewer)
	require.True(t, s.Changed(k.now), "vacant roles may be held by a newer version")
	require.True(t, s.Changed(k.now.Add(2*clock.Tmax)), "and time ends that")
}

func TestRolesOfSomeSessions(t *testing.T) {
	s, _, k, _ := knownStandings(t, 0)
	k.read(lease.Record{Kind: lease.Claim, Roles: []int32{2, 5}}, nil)
	r := lease.Record{Kind: lease.Claim, Session: session("c"), Name: "c", T: time.Second, Longest: lease.Unsaid, Read: 1, Seq: 3, Roles: []int32{1}}
	k.Read(0, Entry{Offset: 2}, &r, nil, k.now)
	require.Equal(t, []int32{0, 2, 5}, s.HeldBy(map[lease.Session]bool{session("b"): true}))
	require.Equal(t, []int32{0, 1, 2, 5}, s.HeldBy(map[lease.Session]bool{session("b"): true, session("c"): true}))
	require.Empty(t, s.HeldBy(map[lease.Session]bool{session("x"): true}))
	require.Empty(t, s.HeldBy(nil))
}
