package neli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

// When the barrier has returned from LeaderRevoked, the Release is due although it may not be sent
// yet. No new work begins from then on.
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

// Partitions that were revoked at different times share one event, with the earliest deadline.
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

// The application counts as alive while the barrier is at work, and for MaxPulseInterval afterwards.
func TestRunningBarrierCountsAsAlive(t *testing.T) {
	for _, e := range []Event{LeaderAcquired{}, LeaderRevoked{}, LeaderFenced{}} {
		t.Run(e.kind(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, _ := onRoles(t, 1, 1)
				require.Equal(t, 30*time.Second, n.set.MaxPulseInterval)
				n.set.HeartbeatTimeout = 5 * time.Second
				hang, returned := make(chan struct{}), make(chan struct{})
				n.barrier = func(Event) { <-hang }
				n.heard()
				go func() {
					defer close(returned)
					n.call(e, pulses{n})
				}()
				synctest.Wait()
				time.Sleep(5*time.Second - 1)
				require.False(t, n.deaf(clock.Glance()))
				time.Sleep(time.Nanosecond)
				require.True(t, n.deaf(clock.Glance()))
				time.Sleep(time.Hour)
				require.True(t, n.alive(clock.Glance()))
				require.Equal(t, time.Hour+5*time.Second, n.inBarrier(clock.Glance()))
				close(hang)
				<-returned
				require.False(t, n.deaf(clock.Glance()))
				time.Sleep(30*time.Second - 1)
				require.True(t, n.alive(clock.Glance()))
				time.Sleep(time.Nanosecond)
				require.False(t, n.alive(clock.Glance()))
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
	n.set.Weight = func(role int) int { return 5 - role }
	require.ErrorContains(t, n.SetRoles(6), "neli: SetRoles: Config.Weight: 0 of role 5 must be between 1 and 1000000")
	require.Equal(t, maxRoles, a.desired.Roles)
	require.NoError(t, n.SetRoles(5))
	require.NotNil(t, a.desired.Weights)
}

// A Pulse on another goroutine, while the barrier handles a revocation, does not shorten the Deadline.
func TestConcurrentPulseKeepsARevocationDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := onRoles(t, 1, 1)
		n.set.DrainTimeout = 2 * time.Minute
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

func TestRolesOfAChange(t *testing.T) {
	c := Change{Reason: elected, Terms: []Term{
		{Partition: 0, Roles: []int{0, 4, 8}, Token: 70},
		{Partition: 1, Token: 71},
		{Partition: 3, Roles: []int{3, 7}, Token: 0},
	}}
	require.Equal(t, []int{0, 3, 4, 7, 8}, c.Roles())
	require.Equal(t, []int{0, 4, 8}, c.Terms[0].Roles, "asking changes nothing")

	// One partition may have several terms, because its roles were claimed separately.
	c.Terms = append(c.Terms, Term{Partition: 3, Roles: []int{11}, Token: 80}, Term{Partition: 3, Roles: []int{15}, Token: 90})
	require.Equal(t, []int{0, 3, 4, 7, 8, 11, 15}, c.Roles())

	var none Change
	require.Empty(t, none.Roles())
}

func TestEventsAreValues(t *testing.T) {
	ch := Change{Reason: ReasonClosing, Terms: []Term{{Partition: 2, Roles: []int{2}, Token: 9}}}
	for _, c := range []struct {
		e    Event
		want string
	}{
		{LeaderAcquired{Change{Reason: elected, Terms: ch.Terms}}, "leader acquired (elected): partition 2 token 9"},
		{LeaderRevoked{ch, time.Now()}, "leader revoked (closing): partition 2 token 9"},
		{LeaderFenced{Change{Reason: ReasonLapsed, Terms: ch.Terms}}, "leader fenced (lapsed): partition 2 token 9"},
	} {
		require.Equal(t, c.want, c.e.String())
		require.Equal(t, c.want, fmt.Sprint(c.e))
		switch e := c.e.(type) { // as an application tells them apart
		case LeaderAcquired:
			require.Equal(t, []int{2}, e.Roles())
		case LeaderRevoked:
			require.Equal(t, []int{2}, e.Roles())
			require.False(t, e.Deadline.IsZero())
		case LeaderFenced:
			require.Equal(t, []int{2}, e.Roles())
		default:
			require.Fail(t, "unknown event", "%T", e)
		}
	}
}

// An event of a thousand partitions is shown in a short line.
func TestEventStringIsShort(t *testing.T) {
	ch := Change{Reason: elected}
	for p := range 8 {
		ch.Terms = append(ch.Terms, Term{Partition: p, Token: int64(p)})
	}
	require.NotContains(t, LeaderAcquired{ch}.String(), "more")
	for p := 8; p < 1000; p++ {
		ch.Terms = append(ch.Terms, Term{Partition: p, Token: int64(p)})
	}
	s := LeaderAcquired{ch}.String()
	require.Contains(t, s, "partition 7 token 7 and 992 more terms")
	require.Less(t, len(s), 300)
}

func TestReasonString(t *testing.T) {
	seen := map[string]bool{}
	for r := Reason(0); r <= ReasonFatal; r++ {
		s := r.String()
		require.NotContains(t, s, "Reason(", "reason %d has no name", int(r))
		require.False(t, seen[s], "%q twice", s)
		seen[s] = true
	}
	require.Equal(t, "elected", elected.String())
	require.Equal(t, "unassigned", ReasonUnassigned.String())
	require.Equal(t, "lapsed", ReasonLapsed.String())
	require.Equal(t, "overdue", ReasonOverdue.String())
	require.Equal(t, "fatal", ReasonFatal.String())
	require.Equal(t, "Reason(-1)", Reason(-1).String())
	require.Equal(t, "Reason(16)", (ReasonFatal + 1).String())
}

// A barrier that panics is not given the same event again. The next driver delivers the other
// events that were collected with it.
func TestPanickingBarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told recorder
		panics := false
		n, a := onRoles(t, 3, 3, func(e Event) {
			told.barrier(e)
			if panics {
				panics = false
				panic("barrier")
			}
		})
		pulse(t, n)
		a.claim(10, 0)
		a.claim(11, 1)
		a.claim(12, 2)
		require.True(t, pulse(t, n))
		told.take()
		a.lose(0)
		a.mu.Lock()
		a.tab.End([]int{1}, term.LogReset, false)
		a.mu.Unlock()
		panics = true
		require.Panics(t, func() { _, _ = n.Pulse(0) })
		require.Equal(t, []int{0}, told.take()[0].(LeaderFenced).Roles())
		require.True(t, pulse(t, n), "it leads role 2")
		es := told.take()
		require.Len(t, es, 1)
		require.Equal(t, []int{1}, es[0].(LeaderFenced).Roles())
		require.Equal(t, 1, n.told)
	})
}

// A panic of the barrier ends Lead. Its functions are told to finish, and none is left behind.
func TestPanickingBarrierEndsLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a := onRoles(t, 2, 2, func(e Event) {
			if _, ok := e.(LeaderFenced); ok {
				panic("barrier")
			}
		})
		caught := make(chan any)
		causes := make(chan error, 2)
		go func() {
			defer func() { caught <- recover() }()
			_ = n.Lead(t.Context(), func(ctx context.Context, l Leadership) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				causes <- context.Cause(ctx)
				return ctx.Err()
			})
		}()
		synctest.Wait()
		a.claim(10, 0)
		a.claim(11, 1)
		synctest.Wait()
		a.lose(0)
		require.Equal(t, "barrier", <-caught)
		require.ElementsMatch(t, []error{ErrFenced, ErrRevoked}, []error{<-causes, <-causes})
		synctest.Wait()
		require.False(t, a.desired.Contend)
		_, err := n.Pulse(0) // it can be driven again
		require.NoError(t, err)
	})
}

// A program may recover from a panic of the barrier while functions of Lead still work on their roles. The next Lead
// starts no second function for such a role until the first has returned.
func TestLeadWaitsForFunctionsLeftByAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a := onRoles(t, 2, 2, func(e Event) {
			if _, ok := e.(LeaderFenced); ok {
				panic("barrier")
			}
		})
		var atWork, runs atomic.Int32 // on role 1
		work := func(ctx context.Context, l Leadership) error {
			if l.Role == 1 {
				runs.Add(1)
				if atWork.Add(1) > 1 {
					t.Error("two functions work on role 1")
				}
				defer atWork.Add(-1)
			}
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil
		}
		caught := make(chan any)
		go func() {
			defer func() { caught <- recover() }()
			_ = n.Lead(t.Context(), work)
		}()
		synctest.Wait()
		a.claim(10, 0)
		a.claim(11, 1)
		synctest.Wait()
		a.lose(0)
		require.Equal(t, "barrier", <-caught)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ended := make(chan error)
		go func() { ended <- n.Lead(ctx, work) }()
		require.NoError(t, <-ended)
		require.Equal(t, int32(2), runs.Load(), "the next Lead has worked on role 1, too")
	})
}

// envPanics makes this test binary run as the process whose function panics.
const envPanics = "NELI_TEST_PANICS"

func panics(context.Context) { panic("the function's own panic") }

// A panic of a function ends the process at once, even while the barrier is at work and Lead
// receives no results. The stack trace shows where the function panicked.
func TestPanickingFunctionEndsTheProcess(t *testing.T) {
	if os.Getenv(envPanics) != "" {
		atWork := make(chan struct{})
		n, a := onRoles(t, 2, 2, func(e Event) {
			if _, ok := e.(LeaderFenced); ok {
				close(atWork)
				select {}
			}
		})
		started := make(chan int, 2)
		go func() {
			a.claim(10, 0)
			a.claim(11, 1)
			<-started
			<-started
			a.lose(0)
		}()
		t.Error(n.Lead(t.Context(), func(ctx context.Context, l Leadership) error {
			started <- l.Role
			<-atWork
			if l.Role == 1 {
				panics(ctx)
			}
			return nil
		}))
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=1m") //nolint:gosec // this test binary
	cmd.Env = append(os.Environ(), envPanics+"=1")
	said, err := cmd.CombinedOutput()
	require.NoError(t, ctx.Err(), "the process goes on")
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, 2, ended.ExitCode(), "%s", said)
	require.Contains(t, string(said), "panic: the function's own panic")
	require.Contains(t, string(said), "neli.panics(")
}
