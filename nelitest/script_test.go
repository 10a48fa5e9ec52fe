package nelitest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// scripted drives a Script, and records what its barrier gets.
type scripted struct {
	*nelitest.Script
	events []neli.Event
	during func(neli.Event) // what the barrier does
}

func newScripted() *scripted {
	s := &scripted{during: func(neli.Event) {}}
	s.Script = nelitest.NewScript(func(e neli.Event) {
		s.events = append(s.events, e)
		s.during(e)
	})
	return s
}

// pulse pulses once, and expects events.
func (s *scripted) pulse(t *testing.T, leads bool, events ...string) {
	t.Helper()
	s.events = nil
	isLeader, err := s.Pulse(time.Second)
	require.NoError(t, err)
	require.Equal(t, leads, isLeader)
	s.got(t, events...)
}

func (s *scripted) got(t *testing.T, events ...string) {
	t.Helper()
	var got []string
	for _, e := range s.events {
		got = append(got, e.String())
	}
	require.Equal(t, events, got)
}

func TestScriptFollowsCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		began := time.Now()
		s.pulse(t, false)
		require.Equal(t, time.Second, time.Since(began), "it waits for its turn to lead")

		s.Acquire(2, 0, 2)
		require.False(t, s.IsLeaderOf(0), "not before the barrier")
		s.during = func(neli.Event) { require.True(t, s.IsLeaderOf(2)) }
		s.pulse(t, true, "leader acquired (elected): partition 0 token 1")
		s.Acquire(0, 1)
		s.pulse(t, true, "leader acquired (elected): partition 0 token 2")
		require.Equal(t, []int{1}, s.events[0].(neli.LeaderAcquired).Roles(), "it leads 0 already")

		s.Revoke(5*time.Second, 2)
		s.during = func(e neli.Event) {
			require.Equal(t, 5*time.Second, time.Until(e.(neli.LeaderRevoked).Deadline))
			time.Sleep(5*time.Second - 1)
			require.True(t, s.IsLeaderOf(2))
			time.Sleep(time.Nanosecond)
			require.False(t, s.IsLeaderOf(2), "at its deadline")
			began := time.Now()
			_, err := s.Pulse(time.Second)
			require.NoError(t, err)
			require.Equal(t, time.Second, time.Since(began), "it waits for its turn no longer than that")
		}
		s.pulse(t, true, "leader revoked (rebalanced): partition 0 token 1")
		s.during = func(neli.Event) {}

		s.Fence(1)
		require.False(t, s.IsLeaderOf(1), "before anything tells the program")
		token, ok := s.Token(0)
		require.True(t, ok)
		require.EqualValues(t, 1, token)
		s.pulse(t, true, "leader fenced (lapsed): partition 0 token 2")
		s.during = func(neli.Event) {
			s.Fence()
			require.False(t, s.IsLeaderOf(0), "it is being revoked")
		}
		require.NoError(t, s.Close())
		s.got(t, "leader fenced (lapsed): partition 0 token 2", "leader revoked (closing): partition 0 token 1")
		_, err := s.Pulse(time.Minute)
		require.ErrorIs(t, err, neli.ErrClosed)
	})
}

func TestScriptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		s.Acquire(0)
		s.pulse(t, true, "leader acquired (elected): partition 0 token 1")
		broken := errors.New("broken")
		s.events = nil
		s.Fail(broken)
		for range 2 {
			_, err := s.Pulse(time.Minute)
			require.Equal(t, broken, err)
		}
		s.got(t, "leader fenced (fatal): partition 0 token 1")
		require.NoError(t, s.Close())
	})
}

// A Pulse that waits is woken by a command of another goroutine.
func TestScriptWakesAPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		time.AfterFunc(time.Second, func() { s.Acquire(0) })
		began := time.Now()
		isLeader, err := s.Pulse(time.Hour)
		require.NoError(t, err)
		require.True(t, isLeader)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// A closed Neli reads nothing more, so it must not go on to count the roles that it released as vacant: another
// member leads them.
func TestAClosedNeliCountsNoVacancies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		defer b.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		start := func(name string) *neli.Neli {
			n, err := neli.New(neli.Config{LeaderGroupID: "g", Roles: 8, Provider: b.Provider(name)})
			require.NoError(t, err)
			go func() {
				ended <- n.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil })
			}()
			time.Sleep(30 * time.Second)
			return n
		}
		alice, bob := start("alice"), start("bob")
		require.NoError(t, alice.Close())
		require.ErrorIs(t, <-ended, neli.ErrClosed)
		before := alice.Stats().Leaderless
		time.Sleep(10 * time.Minute)
		require.Equal(t, 8, bob.Stats().Led)
		require.InDelta(t, before, alice.Stats().Leaderless, 0.1)
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, bob.Close())
	})
}
