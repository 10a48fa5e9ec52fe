package neli

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

// When the barrier has returned from LeaderRevoked the Release is due, though it
// may not be sent yet: nothing is begun any more.
func TestNoLeaderAfterTheBarrierReturned(t *testing.T) {
	bed := newBenchBed(t, 2)
	var revoked []int
	bed.n.barrier = func(e Event) {
		r, ok := e.(LeaderRevoked)
		if !ok {
			return
		}
		revoked = r.Partitions()
		require.True(t, bed.n.IsLeader(), "the work in hand is to be finished")
		require.True(t, bed.n.IsLeaderOf(1))
		token, ok := bed.n.Token(1)
		require.True(t, ok)
		require.Equal(t, r.Terms[1].Token, token)
	}
	bed.lead(t)
	bed.arb.nominate(nil, false) // a completed assignment leaves both out
	bed.arb.stepAll()            // asks
	require.Empty(t, bed.log.sent(t))
	ok, err := bed.n.Pulse(0)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, revoked)
	require.False(t, ok, "Pulse says: work on")
	require.False(t, bed.n.IsLeader())
	for role := range 2 {
		require.False(t, bed.n.IsLeaderOf(role))
		_, ok = bed.n.Token(role)
		require.False(t, ok)
		require.NotEqual(t, noToken, bed.arb.leases[role].mine, "the lease lasts until it is released")
	}
	bed.arb.stepAll()
	out := bed.log.sent(t)
	require.Len(t, out, 2)
	for _, r := range out {
		require.Equal(t, kindRelease, r.kind)
	}
}

// Partitions that were asked for at different times share one event. All of it is
// to be finished by the earliest deadline.
func TestRevokedDeadlineIsTheEarliest(t *testing.T) {
	bed := newBenchBed(t, 3)
	begin := clock()
	bed.n.now = func() instant { return begin }
	revoke := func(p int, after time.Duration) term.Change {
		return term.Change{Kind: term.Revoked, Vector: p, Units: []int{p}, Reason: ReasonUnassigned, Deadline: begin.add(after).point()}
	}
	due := func(cs ...term.Change) time.Duration {
		return time.Until(bed.n.event(cs).(LeaderRevoked).Deadline).Round(time.Second)
	}
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, 10*time.Second, due(revoke(0, 14*time.Second), revoke(1, 10*time.Second), revoke(2, 12*time.Second)))
		require.Equal(t, time.Second, due(revoke(2, time.Second)))
		e := bed.n.event([]term.Change{revoke(0, time.Second), revoke(1, time.Second), revoke(2, time.Second)})
		require.Equal(t, []int{0, 1, 2}, e.(LeaderRevoked).Partitions())
	})
}

// The barrier of a revocation has until its Deadline, however long that is; an
// application that hangs in it is not alive for ever.
func TestAliveInTheBarrierOfARevocation(t *testing.T) {
	for _, c := range []struct {
		name         string
		drain, until time.Duration
		event        Event
	}{
		{"revoked", 10 * time.Second, 30 * time.Second, LeaderRevoked{}},
		{"revoked, a long drain", 2 * time.Minute, 2 * time.Minute, LeaderRevoked{}},
		{"acquired", 2 * time.Minute, 30 * time.Second, LeaderAcquired{}},
		{"fenced", 2 * time.Minute, 30 * time.Second, LeaderFenced{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bed := newBenchBed(t, 1)
				bed.n.set.drain = c.drain
				require.Equal(t, 30*time.Second, bed.n.set.maxPulse)
				hang, returned := make(chan struct{}), make(chan struct{})
				bed.n.barrier = func(Event) { <-hang }
				bed.n.heard()
				go func() {
					defer close(returned)
					bed.n.call(c.event, pulses{bed.n})
				}()
				synctest.Wait()
				time.Sleep(c.until - 1)
				require.True(t, bed.n.alive(clock()))
				time.Sleep(1 * time.Nanosecond)
				require.False(t, bed.n.alive(clock()), "alive for ever")
				close(hang)
				<-returned
			})
		})
	}
}

func TestSetRolesLimits(t *testing.T) {
	bed := newBenchBed(t, 1)
	for _, r := range []int{-1, 0, maxRoles + 1, 1 << 62} {
		require.ErrorContains(t, bed.n.SetRoles(r), "must be between 1 and 1000000")
	}
	require.NoError(t, bed.n.SetRoles(maxRoles))
	require.Equal(t, maxRoles, bed.arb.posture.roles)
}

// A Pulse of another goroutine beside the barrier of a revocation does not cut
// its Deadline short.
func TestPulseBesideTheBarrierOfARevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := newBenchBed(t, 1)
		bed.n.set.drain = 2 * time.Minute
		hang, returned := make(chan struct{}), make(chan struct{})
		bed.n.barrier = func(Event) { <-hang }
		bed.n.driver <- struct{}{}
		go func() {
			defer close(returned)
			bed.n.call(LeaderRevoked{}, pulses{bed.n})
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		_, err := bed.n.Pulse(0)
		time.Sleep(31 * time.Second)
		alive := bed.n.alive(clock())
		close(hang)
		<-returned
		require.NoError(t, err)
		require.True(t, alive)
	})
}
