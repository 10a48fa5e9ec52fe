package logqueue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// hook is a handler that calls functions before it takes a line.
type hook struct {
	slog.Handler
	handle  func(slog.Record) error
	enabled func(slog.Level) bool
}

func (h hook) Enabled(ctx context.Context, l slog.Level) bool {
	if h.enabled != nil {
		return h.enabled(l)
	}
	return h.Handler.Enabled(ctx, l)
}

func (h hook) Handle(ctx context.Context, r slog.Record) error {
	if h.handle != nil {
		if err := h.handle(r); err != nil {
			return err
		}
	}
	return h.Handler.Handle(ctx, r)
}

func (h hook) WithAttrs(as []slog.Attr) slog.Handler {
	return hook{h.Handler.WithAttrs(as), h.handle, h.enabled}
}
func (h hook) WithGroup(g string) slog.Handler {
	return hook{h.Handler.WithGroup(g), h.handle, h.enabled}
}

// plain writes lines of text at Info and above.
func plain(out *bytes.Buffer) slog.Handler { return slog.NewTextHandler(out, nil) }

func in(t *testing.T, test func(t *testing.T, out *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &bytes.Buffer{}) })
}

func TestLinesKeepOrderAttributesAndTime(t *testing.T) {
	in(t, func(t *testing.T, out *bytes.Buffer) {
		log, q := New(hook{Handler: plain(out), handle: func(slog.Record) error { time.Sleep(time.Hour); return nil }}, "group", "g")
		log.With("role", 1).WithGroup("of").Info("one", "a", 2)
		time.Sleep(time.Second)
		log.Warn("two")
		require.True(t, q.Flush(nil))
		require.Equal(t, "time=2000-01-01T00:00:00.000Z level=INFO msg=one group=g role=1 of.a=2\n"+
			"time=2000-01-01T00:00:01.000Z level=WARN msg=two group=g\n", strings.ReplaceAll(out.String(), "+00:00", "Z"))
		require.Zero(t, q.Lost())
	})
}

func TestLinesOfSeveralGoroutinesKeepTheirOrder(t *testing.T) {
	var out bytes.Buffer
	log, q := New(plain(&out))
	var work sync.WaitGroup
	for g := range 4 {
		work.Go(func() {
			for i := range 200 {
				log.Info("line", "g", g, "i", i)
			}
		})
	}
	work.Wait()
	require.True(t, q.Flush(time.After(time.Minute)))
	var next [4]int
	for line := range strings.Lines(out.String()) {
		var g, i int
		_, err := fmt.Sscanf(line[strings.Index(line, " g="):], " g=%d i=%d", &g, &i)
		require.NoError(t, err)
		require.Equal(t, next[g], i)
		next[g]++
	}
	require.Equal(t, [4]int{200, 200, 200, 200}, next)
}

func TestBlockedHandlerDelaysNobody(t *testing.T) {
	in(t, func(t *testing.T, out *bytes.Buffer) {
		free := make(chan struct{})
		blocked := hook{Handler: plain(out), handle: func(slog.Record) error { <-free; return nil }}
		log, q := New(blocked)
		began := time.Now()
		log.Info("at work") // the handler's
		synctest.Wait()
		for i := range Most + 7 {
			log.Info("line", "i", i)
		}
		require.Zero(t, time.Since(began))
		require.Equal(t, uint64(7), q.Lost())
		require.Equal(t, Most+1, q.Waiting())
		require.False(t, q.Flush(time.After(time.Minute)))
		close(free)
		require.True(t, q.Flush(nil))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, Most+2)
		require.Contains(t, lines[Most], fmt.Sprintf("i=%d", Most-1))
		require.Contains(t, lines[Most+1], `level=WARN msg="log lines were lost" lines=7 error="the handler is busy"`)
		require.Zero(t, q.Waiting())
	})
}

func TestDebugLinesLeaveRoomForOthers(t *testing.T) {
	in(t, func(t *testing.T, out *bytes.Buffer) {
		free := make(chan struct{})
		log, q := New(hook{Handler: slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}),
			handle: func(slog.Record) error { <-free; return nil }})
		for range 2 * Most {
			log.Debug("detail")
		}
		log.Error("trouble")
		close(free)
		require.True(t, q.Flush(nil))
		require.Contains(t, out.String(), "trouble")
		require.Contains(t, out.String(), "log lines were lost")
	})
}

func TestLinesLostByTheHandlerAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		fail func() error
		want string
	}{
		"panic":  {func() error { panic("boom") }, "the handler panicked: boom"},
		"error":  {func() error { return errors.New("broken pipe") }, "the handler failed: broken pipe"},
		"goexit": {func() error { runtime.Goexit(); return nil }, "the handler ended its goroutine"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, out *bytes.Buffer) {
				var broken atomic.Bool
				broken.Store(true)
				calls := 0
				log, q := New(hook{Handler: plain(out), handle: func(slog.Record) error {
					calls++
					if broken.Load() {
						return c.fail()
					}
					return nil
				}})
				for range 3 {
					log.Info("lost")
					require.True(t, q.Flush(nil))
				}
				require.Equal(t, 3, calls, "no report is tried while the handler fails")
				require.Equal(t, uint64(3), q.Lost())
				broken.Store(false)
				log.Info("taken")
				require.True(t, q.Flush(nil))
				require.Contains(t, out.String(), fmt.Sprintf("lines=3 error=%q", c.want))
			})
		})
	}
}

func TestLevelsFollowTheHandler(t *testing.T) {
	in(t, func(t *testing.T, out *bytes.Buffer) {
		var level slog.LevelVar
		log, q := New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: &level}))
		require.False(t, log.Enabled(t.Context(), slog.LevelDebug))
		level.Set(slog.LevelDebug)
		time.Sleep(2 * levelsEvery)
		log.Enabled(t.Context(), slog.LevelDebug)
		synctest.Wait()
		require.True(t, log.Enabled(t.Context(), slog.LevelDebug))
		level.Set(slog.LevelError)
		log.Warn("not wanted any more")
		require.True(t, q.Flush(nil))
		require.Empty(t, out.String())
	})
}

func TestBlockedEnabledDelaysNobody(t *testing.T) {
	in(t, func(t *testing.T, out *bytes.Buffer) {
		var block atomic.Bool
		free := make(chan struct{})
		log, q := New(hook{Handler: plain(out), enabled: func(slog.Level) bool {
			if block.Load() {
				<-free
			}
			return true
		}})
		block.Store(true)
		time.Sleep(2 * levelsEvery)
		began := time.Now()
		log.With("a", 1).Info("line")
		New(log.Handler()) // of a group that a sentinel begins to watch
		require.Zero(t, time.Since(began))
		close(free)
		require.True(t, q.Flush(nil))
		require.Contains(t, out.String(), "msg=line a=1")
	})
}
