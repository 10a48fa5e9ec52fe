package prepare

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type rig struct {
	*Calls
	results map[uint64][]bool
	log     lines
}

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var errWhy = errors.New("why")

func newRig(prepare func(ctx context.Context, role int) error) *rig {
	r := &rig{results: map[uint64][]bool{}}
	done := make(chan struct{}, 1)
	done <- struct{}{}
	r.Calls = New(prepare, func(why Why) error { return errors.Join(errWhy, errors.New(string(why))) }, func(b Begin, ok bool) {
		<-done
		r.results[b.Call] = append(r.results[b.Call], ok)
		done <- struct{}{}
	}, slog.New(slog.NewTextHandler(&r.log, nil)))
	return r
}

func begin(id uint64) Begin { return Begin{Call: id} }

func end(id uint64, why Why) End { return End{Begin: begin(id), Why: why} }

func TestCallsReportHowPrepareEnds(t *testing.T) {
	errNo := errors.New("no")
	for name, c := range map[string]struct {
		prepare func(context.Context, int) error
		ok      bool
		log     string
	}{
		"ready":    {func(context.Context, int) error { return nil }, true, ""},
		"error":    {func(context.Context, int) error { return errNo }, false, `"Config.Prepare failed" role=3 error=no`},
		"goexit":   {func(context.Context, int) error { runtime.Goexit(); return nil }, false, `error="it ended its goroutine"`},
		"panic":    {func(context.Context, int) error { panic("boo") }, false, `error="it panicked: boo" stack=`},
		"nil":      {func(context.Context, int) error { panic(errNo) }, false, `error="it panicked: no"`},
		"bad role": {func(_ context.Context, role int) error { _ = make([]int, 3)[role]; return nil }, false, `index out of range`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(c.prepare)
				r.Begin(begin(7), 3)
				r.Wait()
				require.Equal(t, map[uint64][]bool{7: {c.ok}}, r.results)
				require.Contains(t, r.log.String(), c.log)
				require.Len(t, r.open, 1, "its context has not ended")
				r.End(end(7, CalledOff))
				require.Empty(t, r.open)
			})
		})
	}
}

// The context of a Prepare that has returned goes on until the role is led or given up. Its cause says which.
func TestContextEndsAfterTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ctx context.Context
		r := newRig(func(c context.Context, _ int) error { ctx = c; return nil })
		r.Begin(begin(1), 0)
		r.Wait()
		require.NoError(t, ctx.Err())
		r.End(end(1, Led))
		require.ErrorContains(t, context.Cause(ctx), "led")
		require.Empty(t, r.open)
	})
}

func TestCallThatIgnoresItsContextIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		r := newRig(func(context.Context, int) error { <-free; return errWhy })
		r.Begin(begin(1), 5)
		r.End(end(1, Late))
		time.Sleep(slow - 1)
		synctest.Wait()
		require.Empty(t, r.log.String())
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		require.Contains(t, r.log.String(), "has not returned although its context has ended\" role=5")
		require.Empty(t, r.results)
		close(free)
		r.Wait()
		require.Equal(t, map[uint64][]bool{1: {false}}, r.results)
		require.NotContains(t, r.log.String(), "failed", "an error after the end says nothing new")
		require.Empty(t, r.open)
	})
}

func TestCallThatEndsWithItsContextIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(ctx context.Context, _ int) error { <-ctx.Done(); return context.Cause(ctx) })
		r.Begin(begin(1), 5)
		r.End(end(1, CalledOff))
		r.Wait()
		time.Sleep(2 * slow)
		synctest.Wait()
		require.Empty(t, r.log.String())
		require.Equal(t, map[uint64][]bool{1: {false}}, r.results)
	})
}

// An End may overtake its Begin, because what a step decides is carried out without a lock. Prepare is then not called.
func TestEndMayOvertakeItsBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		called := false
		r := newRig(func(context.Context, int) error { called = true; return nil })
		r.End(end(1, CalledOff))
		r.Begin(begin(1), 0)
		r.Wait()
		require.False(t, called)
		require.Equal(t, map[uint64][]bool{1: {false}}, r.results, "its slot is free")
		require.Empty(t, r.open)
		require.Empty(t, r.early)
	})
}

func TestStopEndsAllContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var causes []error
		r := newRig(func(ctx context.Context, role int) error {
			if role == 0 {
				context.AfterFunc(ctx, func() { causes = append(causes, context.Cause(ctx)) })
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		r.Begin(begin(1), 0)
		r.Begin(begin(2), 1)
		synctest.Wait()
		r.Stop()
		r.Wait()
		synctest.Wait()
		require.Len(t, causes, 1)
		require.ErrorContains(t, causes[0], "unwilling")
		r.Begin(begin(3), 0)
		r.End(end(3, Unwilling))
		r.Wait()
		require.Equal(t, map[uint64][]bool{1: {true}, 2: {false}, 3: {false}}, r.results)
		require.Empty(t, r.open)
		require.Empty(t, r.early)
	})
}
