package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// A role that is won begins a term, with the reason for which the role was vacant. It is kept alive from then on.
func TestWonRoleBeginsATerm(t *testing.T) {
	for name, c := range map[string]struct {
		r    lease.Record
		want vacancy.Cause
	}{
		"its holder left":                {lease.Record{}, vacancy.Claimed},
		"it was handed over to b":        {lease.Record{To: "b"}, vacancy.Claimed},
		"it was handed over":             {lease.Record{To: "a"}, vacancy.Claimed},
		"it was handed over for balance": {lease.Record{To: "a", Moved: true}, vacancy.Rebalanced},
		"by a Transfer":                  {lease.Record{To: "a", Pinned: true}, vacancy.Transferred},
	} {
		t.Run(name, func(t *testing.T) {
			k := newRooms(1, 1, nil)
			k.begin()
			s := k.shards[0]
			k.read(0, k.from("z", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0}}))
			c.r.Kind, c.r.Ended = lease.Release, []lease.Grant{{Token: 0, Roles: []int32{0}}}
			k.read(0, k.from("z", 0, c.r))
			s.wanted = true
			s.send([]int32{0}, k.tell(k.now))
			s.main.BeatAt = 0 // the Claim was long in coming back
			k.echo()
			require.Equal(t, []int32{0}, s.own.Roles())
			h := s.own.At(0)
			require.Equal(t, c.want, h.Cause)
			require.Equal(t, k.now.Mono, h.Since)
			require.False(t, s.wanted, "it is looked at whether it is to be given up again")
			require.Equal(t, k.now.Mono.Add(k.set.HeartbeatInterval), s.main.BeatAt)
			_, leads := s.leases.Leads(0, k.now)
			require.True(t, leads)
			require.True(t, s.claims.IsEmpty())
		})
	}
}

// When the holders become known, all claims are planned again.
func TestClaimsArePlannedAnewOnceHoldersAreKnown(t *testing.T) {
	k := newRooms(1, 2, nil)
	c := k.channels[0]
	s := k.shards.of(c.Index)
	s.leases.Read(0, Entry{Reset: true, Offset: 5, End: 6}, nil, nil, k.now)
	c.Restart(6, k.now)
	s.begun = true
	c.Announcements.GoBack()
	c.Pacing.Think(clock.Never)
	k.ends[0] = 5
	s.claims.Add(k.now.Mono.Add(time.Hour), []int32{1})
	require.False(t, s.leases.Known())
	known := lease.New(lease.Rules{Process: "b", Name: "b", T: time.Second, History: announce.History})
	known.Begin(0, true, k.now)
	claim := lease.Record{Kind: lease.Claim, Session: session("z"), T: time.Second, Longest: lease.Unsaid, Read: -1, Seq: 1, Fresh: true, Roles: []int32{0}}
	known.Read(4, &claim, k.now)
	r := known.Snapshot(k.now)[0]
	ev := k.read(0, r)
	require.True(t, ev.Known)
	require.True(t, s.leases.Known())
	require.Zero(t, c.Pacing.ThinksAt())
	require.False(t, c.Announcements.GoesBack(), "it may look back again when it has to")
	require.NotEqual(t, k.now.Mono.Add(time.Hour), listing(&s.claims)[vacancy.ToClaim][1])
	_, held := s.leases.Holder(0)
	require.True(t, held)
	s.Standings.Changed(k.now)
	s.Heard(session("z"), true)
	require.True(t, s.Standings.Changed(k.now), "nobody has heard it since reading began")
}
