package neli_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// run is one call of the function given to Lead.
type run struct {
	neli.Leadership
	ctx  context.Context
	done chan error // what the function is to return
}

// leading calls Lead on a goroutine; runs arrive on the first channel, the result on the second.
func leading(ctx context.Context, m *member) (<-chan *run, <-chan error) {
	runs, result := make(chan *run, 100), make(chan error, 1)
	go func() {
		result <- m.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
			r := &run{Leadership: l, ctx: ctx, done: make(chan error, 1)}
			runs <- r
			return <-r.done
		})
	}()
	return runs, result
}

func next(c *cluster, runs <-chan *run, within time.Duration) *run {
	c.Helper()
	select {
	case r := <-runs:
		return r
	case <-time.After(within):
		require.FailNow(c, "no function was started within "+within.String())
		return nil
	}
}

func none(c *cluster, runs <-chan *run) {
	c.Helper()
	select {
	case r := <-runs:
		require.FailNow(c, "a function was started", "role %d token %d", r.Role, r.Token)
	default:
	}
}

func TestLeadRunsTheFunctionOncePerTerm(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Join("a", open)
		runs, result := leading(c.Context(), a)
		r := next(c, runs, 2*silence)
		token, ok := a.Token(0)
		require.True(c, ok)
		require.Equal(c, token, r.Token)
		require.True(c, r.Valid())
		c.Pass(5 * time.Minute) // without any pulse the lease does not lapse
		require.NoError(c, r.ctx.Err())
		c.Broker.CutOff("a", nelitest.LinkAll)
		<-r.ctx.Done()
		require.ErrorIs(c, context.Cause(r.ctx), neli.ErrFenced)
		require.False(c, r.Valid())
		c.Broker.Restore("a", nelitest.LinkAll)
		c.Pass(time.Minute)
		none(c, runs) // the function of the former term has not returned yet
		require.True(c, a.IsLeader())
		r.done <- context.Cause(r.ctx)
		again := next(c, runs, time.Second)
		require.Greater(c, again.Token, r.Token)
		again.done <- nil // ready; the role stays
		c.Pass(time.Minute)
		none(c, runs)
		require.True(c, a.IsLeader())
		require.NoError(c, a.Close())
		require.ErrorIs(c, <-result, neli.ErrClosed)
	})
}

// Done closes at the very instant at which Valid turns false.
func TestLeadContextEndsWithTheLease(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Join("a", open)
		runs, result := leading(c.Context(), a)
		r := next(c, runs, 2*silence)
		c.Pass(10 * time.Second)
		c.Broker.CutOff("a", nelitest.LinkAll)
		c.Pass(time.Second) // what was under way has come back
		require.True(c, r.Valid())
		end := time.Now().Add(r.Remaining())
		<-r.ctx.Done()
		require.Equal(c, end, time.Now())
		require.False(c, r.Valid())
		require.ErrorIs(c, context.Cause(r.ctx), neli.ErrFenced)
		r.done <- nil
		require.NoError(c, a.Close())
		require.ErrorIs(c, <-result, neli.ErrClosed)
	})
}

func TestLeadEndsWithItsContext(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a, b := c.Join("a", open), c.Work("b", nil)
		_ = b
		ctx, cancel := context.WithCancelCause(c.Context())
		runs, result := leading(ctx, a)
		var r *run
		select {
		case r = <-runs:
		case <-time.After(20 * time.Second):
			require.NoError(c, b.Close())
			r = next(c, runs, time.Minute)
		}
		why := errors.New("enough")
		cancel(why)
		<-r.ctx.Done()
		require.ErrorIs(c, context.Cause(r.ctx), why)
		c.Pass(3 * time.Second)
		require.True(c, a.IsLeader(), "the lease is kept while the function finishes")
		r.done <- r.ctx.Err()
		require.NoError(c, <-result)
		require.False(c, a.IsLeader())
		require.Equal(c, neli.ReasonResigned, a.Last().(neli.LeaderRevoked).Reason)
		c.Pass(time.Minute)
		require.False(c, a.IsLeader(), "it contends again only when it is driven")
		ok, err := a.Pulse(2 * silence)
		require.NoError(c, err)
		require.Equal(c, !b.IsLeader(), ok)
	})
}

func TestLeadReturnsWhatTheFunctionReturns(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(3), func(c *cluster) {
		a := c.Join("a", open)
		runs, result := leading(c.Context(), a)
		rs := []*run{next(c, runs, 2*silence), next(c, runs, time.Second), next(c, runs, time.Second)}
		boom := errors.New("boom")
		rs[1].done <- boom
		for _, i := range []int{0, 2} {
			<-rs[i].ctx.Done()
			require.ErrorIs(c, context.Cause(rs[i].ctx), neli.ErrRevoked)
			rs[i].done <- nil
		}
		require.ErrorIs(c, <-result, boom)
		require.False(c, a.IsLeader())
	})
}

func TestLeadFollowsSetRoles(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(2), func(c *cluster) {
		a := c.Join("a", func(cfg *neli.Config) { cfg.Partitions = 2; open(cfg) })
		runs, result := leading(c.Context(), a)
		byRole := map[int]*run{}
		collect := func(n int) {
			for range n {
				r := next(c, runs, 2*silence)
				byRole[r.Role] = r
			}
			none(c, runs)
		}
		collect(2)
		require.NoError(c, a.SetRoles(5))
		collect(3)
		require.Less(c, byRole[0].Token, byRole[2].Token, "each role has a lease of its own")
		require.NoError(c, a.SetRoles(1))
		for role := 1; role < 5; role++ {
			<-byRole[role].ctx.Done()
			require.ErrorIs(c, context.Cause(byRole[role].ctx), neli.ErrRevoked)
		}
		require.NoError(c, byRole[0].ctx.Err())
		c.Pass(3 * time.Second)
		require.Empty(c, records(c, "app.neli", 1, "release"), "two functions still work there")
		for role := 1; role < 5; role++ {
			byRole[role].done <- nil
		}
		c.Pass(time.Second)
		require.NotEmpty(c, records(c, "app.neli", 1, "release"))
		require.NoError(c, a.SetRoles(3))
		collect(2)
		require.NoError(c, a.SetRoles(1))
		go func() {
			for _, role := range []int{0, 1, 2} {
				<-byRole[role].ctx.Done()
				byRole[role].done <- nil
			}
		}()
		require.NoError(c, a.Close())
		require.ErrorIs(c, <-result, neli.ErrClosed)
	})
}

// A function may give up its own role if it passes on its own context, which ends when the function
// has to return. With another context it would wait for itself until DrainTimeout is over.
func TestAFunctionOfLeadGivesUpItsRole(t *testing.T) {
	for what, giveUp := range map[string]func(context.Context, *neli.Neli) error{
		"step down": func(ctx context.Context, n *neli.Neli) error { return n.StepDown(ctx) },
		"transfer":  func(ctx context.Context, n *neli.Neli) error { return n.Transfer(ctx, 0, "b") },
	} {
		t.Run(what, func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *cluster) {
				a := c.Join("a", open)
				runs, result := leading(c.Context(), a)
				r := next(c, runs, 2*silence)
				b := c.Work("b", open)
				c.Pass(20 * time.Second) // until both know each other
				began := time.Now()
				require.ErrorIs(c, giveUp(r.ctx, a.Neli), neli.ErrRevoked)
				require.True(c, r.Valid(), "the lease is kept until the function has returned")
				r.done <- nil
				c.Eventually(time.Second, "b leads", b.IsLeader)
				require.Less(c, time.Since(began), 3*time.Second)
				require.NoError(c, b.Close())

				r = next(c, runs, time.Minute)
				b = c.Work("b", open)
				c.Pass(20 * time.Second)
				began = time.Now()
				require.NoError(c, giveUp(c.Context(), a.Neli))
				require.GreaterOrEqual(c, time.Since(began), 10*time.Second)
				require.False(c, r.Valid())
				c.Eventually(time.Second, "b leads beside the function, which has not returned", b.IsLeader)
				r.done <- nil
				require.NoError(c, a.Close())
				require.ErrorIs(c, <-result, neli.ErrClosed)
			})
		})
	}
}

// If the caller of StepDown stops waiting, as with an HTTP request, StepDown goes on as usual: the pause
// in claims begins when the work is done, not when the caller stops waiting.
func TestStepDownGoesOnWithoutItsCaller(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Join("a", func(cfg *neli.Config) { open(cfg); cfg.DrainTimeout = time.Minute })
		runs, result := leading(c.Context(), a)
		r := next(c, runs, 2*silence)
		ctx, cancel := context.WithTimeout(c.Context(), time.Second)
		defer cancel()
		require.ErrorIs(c, a.StepDown(ctx), context.DeadlineExceeded)
		c.Pass(40 * time.Second)
		require.True(c, r.Valid(), "the work goes on")
		done := time.Now()
		r.done <- nil
		r = next(c, runs, time.Minute)
		require.GreaterOrEqual(c, time.Since(done), 10*time.Second, "it led again at once")

		ctx, cancel = context.WithTimeout(c.Context(), time.Second)
		defer cancel()
		require.ErrorIs(c, a.StepDown(ctx), context.DeadlineExceeded)
		r.done <- nil
		require.NoError(c, a.Close())
		require.ErrorIs(c, <-result, neli.ErrClosed)
	})
}

func TestDriversAfterCancelAndClose(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Join("a", open)
		require.Error(c, a.Lead(c.Context(), nil))
		canceled, cancel := context.WithCancel(c.Context())
		cancel()
		none := func(context.Context, neli.Leadership) error { return errors.New("called") }
		require.NoError(c, a.Lead(canceled, none))
		require.NoError(c, a.Close())
		require.ErrorIs(c, a.Lead(c.Context(), none), neli.ErrClosed)
		_, err := a.Background(func() {})
		require.ErrorIs(c, err, neli.ErrClosed)
		_, err = a.Background(nil)
		require.Error(c, err)
		ok, err := a.Pulse(time.Second)
		require.False(c, ok)
		require.ErrorIs(c, err, neli.ErrClosed)
	})
}

func TestPulserCloseEndsLeadership(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Join("a", open)
		p, err := a.Background(a.Task)
		require.NoError(c, err)
		c.Leader(0, 2*silence)
		b := c.Work("b", open)
		require.NoError(c, p.Close())
		require.NoError(c, p.Close())
		require.NoError(c, p.Await())
		require.Equal(c, []string{"acquired", "revoked"}, a.Kinds())
		c.Eventually(time.Second, "b leads", b.IsLeader)
		tasks := a.Tasks()
		c.Pass(time.Minute)
		require.Equal(c, tasks, a.Tasks())
		require.Equal(c, neli.StateLive, a.State())
		require.False(c, slices.Contains(b.Kinds(), "fenced"))
	})
}
