package neli

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/stretchr/testify/require"
)

// held has the arguments of a function of Lead that waits until the test lets it return.
type held struct {
	ctx   context.Context
	of    Leadership
	leave chan error
}

// lends runs Lead on a goroutine, and passes on the arguments of its functions.
func lends(ctx context.Context, n *Neli) (<-chan held, <-chan error) {
	runs, result := make(chan held, 10), make(chan error, 1)
	go func() {
		result <- n.Lead(ctx, func(ctx context.Context, of Leadership) error {
			h := held{ctx, of, make(chan error, 1)}
			runs <- h
			return <-h.leave
		})
	}()
	return runs, result
}

const lentFor = 54 * time.Second // 0.9 T of onRoles

// Here nothing tells the driver of the lapse, as right after a suspension, before any goroutine of
// this package has run. The context notices the lapse by itself.
func TestLeadContextAsksTheClock(t *testing.T) {
	type asked struct {
		ctx, derived context.Context
		done         <-chan struct{} // of ctx, from before the lapse
	}
	for name, ask := range map[string]func(*testing.T, asked){
		"Err":   func(t *testing.T, a asked) { require.ErrorIs(t, a.ctx.Err(), context.Canceled) },
		"Done":  func(t *testing.T, a asked) { require.True(t, closed(a.ctx.Done())) },
		"Cause": func(t *testing.T, a asked) { require.ErrorIs(t, context.Cause(a.ctx), ErrFenced) },
		"Value": func(t *testing.T, a asked) { require.Nil(t, a.ctx.Value("a key")) },
		"Err of a context with a value": func(t *testing.T, a asked) {
			require.Error(t, context.WithValue(a.ctx, new(int), 1).Err())
		},
		"a context that is derived now": func(t *testing.T, a asked) {
			ctx, cancel := context.WithTimeout(a.ctx, time.Minute)
			defer cancel()
			require.ErrorIs(t, ctx.Err(), context.Canceled)
			require.ErrorIs(t, context.Cause(ctx), ErrFenced)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, a := onRoles(t, 1, 1)
				ctx, cancel := context.WithCancel(context.WithValue(t.Context(), new(int), 2))
				runs, result := lends(ctx, n)
				synctest.Wait()
				a.claim(7, 0)
				h := <-runs
				derived, stop := context.WithTimeout(h.ctx, time.Hour)
				defer stop()
				of := asked{h.ctx, derived, h.ctx.Done()}
				time.Sleep(lentFor - 1)
				require.NoError(t, h.ctx.Err())
				require.NoError(t, context.Cause(h.ctx))
				require.True(t, h.of.Valid())
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				require.False(t, closed(of.done), "nobody has noticed")
				require.NoError(t, derived.Err(), "nor looked")

				ask(t, of)
				require.False(t, h.of.Valid())
				require.True(t, closed(of.done), "for those who wait")
				require.ErrorIs(t, derived.Err(), context.Canceled, "for contexts that were derived")
				require.ErrorIs(t, context.Cause(derived), ErrFenced)
				require.ErrorIs(t, context.Cause(h.ctx), ErrFenced)
				synctest.Wait()
				require.Zero(t, n.told, "the driver has looked, too")
				h.leave <- h.ctx.Err()
				synctest.Wait()
				require.Empty(t, runs, "the term is over")
				cancel()
				require.NoError(t, <-result)
			})
		})
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// After its context has ended, a function still sees the same cause.
func TestLeadContextKeepsItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a := onRoles(t, 1, 2)
		ctx, cancel := context.WithCancel(t.Context())
		runs, result := lends(ctx, n)
		synctest.Wait()
		a.claim(7, 1)
		h := <-runs
		require.NoError(t, n.SetRoles(1))
		<-h.ctx.Done()
		time.Sleep(2 * lentFor)
		require.False(t, h.of.Valid())
		require.ErrorIs(t, context.Cause(h.ctx), ErrRevoked)
		h.leave <- nil
		cancel()
		require.NoError(t, <-result)
	})
}

// For a moment the clock said that a term was over, and its function stopped, but nothing else has
// ended the term. The term goes on, and a new function is started for it.
func TestFunctionRestartsInATermThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a := onRoles(t, 1, 1)
		ctx, cancel := context.WithCancel(t.Context())
		runs, result := lends(ctx, n)
		synctest.Wait()
		a.claim(7, 0)
		h := <-runs
		time.Sleep(lentFor)
		a.mu.Lock() // so that the driver cannot collect
		require.Error(t, h.ctx.Err())
		require.ErrorIs(t, context.Cause(h.ctx), ErrFenced)
		a.tab.Renew(0, clock.Glance())
		a.mu.Unlock()
		synctest.Wait()
		require.Empty(t, runs, "the former function is still at work")
		require.True(t, h.of.Valid())
		h.leave <- nil
		again := <-runs
		require.Equal(t, h.of, again.of, "the same term")
		require.NoError(t, again.ctx.Err())
		again.leave <- nil
		synctest.Wait()
		require.Empty(t, runs, "it is ready")
		cancel()
		require.NoError(t, <-result)
	})
}

// Many goroutines use the context while the driver ends it.
func TestLeadContextIsSafeForConcurrentUse(t *testing.T) {
	n, a := onRoles(t, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	runs, result := lends(ctx, n)
	for token := range int64(200) {
		for !n.contends.Load() {
		}
		a.claim(token+1, 0)
		h := <-runs
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for derived := h.ctx; derived.Err() == nil; {
					var stop context.CancelFunc
					derived, stop = context.WithCancel(context.WithValue(h.ctx, new(int), 1))
					defer stop()
				}
				if context.Cause(h.ctx) != ErrFenced {
					t.Error("no cause")
				}
			})
		}
		a.lose(0)
		group.Wait()
		h.leave <- nil
	}
	cancel()
	require.NoError(t, <-result)
}
