package neli

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

// When the barrier has returned from LeaderRevoked the Release is due, though it may
// not be sent yet: nothing is begun any more.
func TestNoLeaderAfterTheBarrierReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n *Neli
		var revoked []int
		n, a := onRoles(t, 2, 2, func(e Event) {
			r, ok := e.(LeaderRevoked)
			if !ok {
				return
			}
			revoked = r.Roles()
			require.True(t, n.IsLeader(), "the work in hand is to be finished")
			token, ok := n.Token(1)
			require.True(t, ok)
			require.Equal(t, int64(20), token)
		})
		pulse(t, n)
		a.claim(10, 0)
		a.claim(20, 1)
		require.True(t, pulse(t, n))
		a.mu.Lock()
		a.tab.Revoke([]int{0, 1}, term.Unassigned, clock.Glance().Add(10*time.Second))
		a.mu.Unlock()
		require.True(t, n.IsLeader())
		require.False(t, pulse(t, n), "Pulse says: work on")
		require.Equal(t, []int{0, 1}, revoked)
		require.Empty(t, led(n))
		require.Len(t, a.finished, 2)
	})
}

// Partitions that were asked for at different times share one event. All of it is
// to be finished by the earliest deadline.
func TestRevokedDeadlineIsTheEarliest(t *testing.T) {
	n, _ := onRoles(t, 3, 3)
	begin := clock.Glance()
	n.now = func() clock.Instant { return begin }
	revoke := func(p int, after time.Duration) term.Change {
		return term.Change{Kind: term.Revoked, Vector: p, Units: []int{p}, Reason: term.Unassigned, Deadline: begin.Add(after)}
	}
	due := func(cs ...term.Change) time.Duration {
		return time.Until(n.event(cs).(LeaderRevoked).Deadline).Round(time.Second)
	}
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, 10*time.Second, due(revoke(0, 14*time.Second), revoke(1, 10*time.Second), revoke(2, 12*time.Second)))
		require.Equal(t, time.Second, due(revoke(2, time.Second)))
		e := n.event([]term.Change{revoke(0, time.Second), revoke(1, time.Second), revoke(2, time.Second)})
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
				n, _ := onRoles(t, 1, 1)
				n.set.drain = c.drain
				require.Equal(t, 30*time.Second, n.set.maxPulse)
				hang, returned := make(chan struct{}), make(chan struct{})
				n.barrier = func(Event) { <-hang }
				n.heard()
				go func() {
					defer close(returned)
					n.call(c.event, pulses{n})
				}()
				synctest.Wait()
				time.Sleep(c.until - 1)
				require.True(t, n.alive(clock.Glance()))
				time.Sleep(1 * time.Nanosecond)
				require.False(t, n.alive(clock.Glance()), "alive for ever")
				close(hang)
				<-returned
			})
		})
	}
}

func TestSetRolesLimits(t *testing.T) {
	n, a := onRoles(t, 1, 1)
	for _, r := range []int{-1, 0, maxRoles + 1, 1 << 62} {
		require.ErrorContains(t, n.SetRoles(r), "must be between 1 and 1000000")
	}
	require.NoError(t, n.SetRoles(maxRoles))
	require.Equal(t, maxRoles, a.desired.Roles)
}

// A Pulse of another goroutine beside the barrier of a revocation does not cut
// its Deadline short.
func TestPulseBesideTheBarrierOfARevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := onRoles(t, 1, 1)
		n.set.drain = 2 * time.Minute
		hang, returned := make(chan struct{}), make(chan struct{})
		n.barrier = func(Event) { <-hang }
		n.driver <- struct{}{}
		go func() {
			defer close(returned)
			n.call(LeaderRevoked{}, pulses{n})
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		_, err := n.Pulse(0)
		time.Sleep(31 * time.Second)
		alive := n.alive(clock.Glance())
		close(hang)
		<-returned
		require.NoError(t, err)
		require.True(t, alive)
	})
}
