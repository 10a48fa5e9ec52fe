package elector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/elector/prepare"
	"github.com/goneli/neli/internal/lease"
)

// forged appends an offer to b in the name of another process.
func (w *world) forged(by string, o lease.Offer) {
	w.put(lease.Record{Kind: lease.Ping, Session: lease.Session{Process: by, N: 1}, Read: int64(len(w.logs[0])) - 1, Seq: 1, Longest: lease.Unsaid, To: "b", Offer: &o})
}

func TestMeaninglessOffersAreIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		by    string
		offer lease.Offer
	}{
		"of a stranger":               {"z", lease.Offer{N: 9, Roles: []int32{0, 1, 2}}},
		"of a member that holds none": {"c", lease.Offer{N: 9, Roles: []int32{0, 1, 2}, Urgent: true}},
		"of roles that nobody holds":  {"a", lease.Offer{N: 1, Roles: []int32{3, 7, lease.MaxRoles - 1}}},
		"of nothing":                  {"a", lease.Offer{N: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w, a, shops := warmWorld(t, 3, nil, "b", "c")
			w.forged(c.by, c.offer)
			w.pass(time.Second)
			require.Zero(t, shops["b"].begun)
			a.transfers(t, 1, "b")
			w.pass(time.Second)
			require.Equal(t, []int{1}, shops["b"].warm, "it does no harm")
		})
	}
}

// An offer with a number that goes back is ignored. A number that is far too great makes a member ignore later
// offers of the same sender, but not those of others.
func TestOffersWithOldNumbersAreIgnored(t *testing.T) {
	w, a, shops := warmWorld(t, 3, nil, "b")
	shops["b"].takes = 400 * time.Millisecond
	a.transfers(t, 1, "b")
	w.pass(200 * time.Millisecond)
	require.Len(t, shops["b"].open, 1)
	w.forged("a", lease.Offer{N: 0, Roles: []int32{0}})
	w.pass(100 * time.Millisecond)
	require.Equal(t, 1, shops["b"].begun, "an older offer")
	w.pass(time.Second)
	require.Equal(t, []int{1}, shops["b"].warm)

	w.forged("a", lease.Offer{N: 1 << 50, Roles: []int32{0}})
	w.pass(time.Second)
	require.Equal(t, 2, shops["b"].begun)
	a.transfers(t, 2, "b")
	w.pass(20 * time.Second)
	require.Equal(t, []int{0, 2}, a.leads(3), "a keeps what is never answered")
	require.Empty(t, shops["b"].ready, "no offer confirms it")
}

func TestUnwantedRolesAreNoLongerPrepared(t *testing.T) {
	for name, who := range map[string][]string{"by all": {"a", "b"}, "by the member": {"b"}} {
		t.Run(name, func(t *testing.T) {
			w, a, shops := warmWorld(t, 3, nil, "b")
			shops["b"].takes = time.Second
			a.transfers(t, 2, "b")
			w.pass(200 * time.Millisecond)
			require.Len(t, shops["b"].open, 1)
			for _, name := range who {
				w.actor(name).want(Desired{Roles: 2, Contend: true})
			}
			w.pass(3 * time.Second)
			require.Empty(t, shops["b"].open)
			require.Equal(t, map[prepare.Why]int{prepare.Unwanted: 1}, shops["b"].ended)
			require.Empty(t, w.actor("b").leads(3))
			require.Len(t, a.leads(3), 4-len(who))
		})
	}
}

func TestManyRolesAreOfferedToOneMember(t *testing.T) {
	const roles = 10_000
	w, a, shops := warmWorld(t, roles, func(s *Settings) { s.Prepares.Most = lease.MaxPrepares }, "b")
	w.mute = true
	most := 0
	shops["b"].takes = 100 * time.Millisecond
	a.want(Desired{Roles: roles, Closing: true, Contend: true})
	for range 110 {
		most = max(most, len(a.warm.Offers.Named("b", 0)))
		w.pass(100 * time.Millisecond)
	}
	require.True(t, a.dead, "it has finished")
	require.Len(t, w.actor("b").leads(roles), roles)
	require.LessOrEqual(t, most, lease.MaxOffered)
	require.LessOrEqual(t, shops["b"].most, lease.MaxPrepares)
	require.Len(t, shops["b"].warm, roles)
}
