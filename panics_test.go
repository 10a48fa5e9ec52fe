package neli

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

// A barrier that panics has been told of that event; what was collected with it is told
// by the next driver.
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

// A panic of the barrier ends Lead; its functions are told to finish, and nothing is
// left behind.
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

// envPanics makes this test binary the process whose function panics.
const envPanics = "NELI_TEST_PANICS"

func panics(context.Context) { panic("the function's own panic") }

// A panic of a function ends the process at once, also while the barrier is at work and Lead
// receives no results. The trace shows where the function panicked.
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
