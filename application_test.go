package neli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/scenario"
	"github.com/goneli/neli/nelitest"
)

// These tests run application code that hangs, panics or fails: the table "What your code may do"
// of docs/guide.md. Each row runs in each mode and with each way to drive a Neli.

// slow is longer than MaxPulseInterval, DrainTimeout and T.
const slow = 45 * time.Second

// cell is one row in one mode with one driver.
type cell struct {
	*cluster
	mode, driver string
	a            *member // the member whose application misbehaves; it has two roles
	lines        logLines
	free         chan struct{} // closed at the end, for code that does not return

	mu    sync.Mutex
	run   func(context.Context, neli.Leadership) error // the function of Lead
	task  func()                                       // the task, or what a loop does between two pulses
	drive sync.WaitGroup
	stop  context.CancelFunc
	err   error // of the driver
}

// row is one thing that the application's code does, and what must hold then.
type row struct {
	does    string
	modes   string // all, if empty
	drivers string // all, if empty
	config  func(c *cell, cfg *neli.Config)
	barrier func(c *cell, e neli.Event)
	holds   func(c *cell)
}

var applicationRows = []row{
	{does: "LeaderAcquired takes 45 s",
		barrier: func(c *cell, e neli.Event) {
			if _, acquired := e.(neli.LeaderAcquired); acquired {
				c.Pass(slow)
			}
		},
		holds: func(c *cell) {
			c.Pass(8 * time.Second)
			if c.mode != "non-exclusive" { // in non-exclusive mode b would get a partition
				c.Work("b", c.configure)
			}
			c.Pass(2 * time.Minute)
			require.Equal(c, []string{"acquired"}, c.kindsOf(0), "one term, and it lasts")
			c.leads(0, 1)
			c.said("the barrier has not returned", slog.LevelWarn, 2) // at 20 s and 40 s
		}},
	{does: "LeaderAcquired never returns",
		barrier: func(c *cell, e neli.Event) {
			if _, acquired := e.(neli.LeaderAcquired); acquired {
				<-c.free
			}
		},
		holds: func(c *cell) {
			c.Pass(11 * time.Minute)
			c.leads(0)
			require.Greater(c, c.a.Stats().Barrier, 10*time.Minute)
			require.Zero(c, c.a.Stats().PulseAge)
			c.said("the barrier has not returned", slog.LevelWarn, 6) // at 20 s, 40 s, 80 s … 640 s
		}},
	{does: "LeaderAcquired never returns, and Healthy objects", modes: "open assigned small",
		config: func(c *cell, cfg *neli.Config) {
			cfg.Healthy = func() error {
				var a *member
				c.set(func() { a = c.a }) // still nil if New calls Healthy before it returns
				if a != nil && a.Stats().Barrier > time.Minute {
					return errors.New("it hangs")
				}
				return nil
			}
		},
		barrier: func(c *cell, e neli.Event) {
			if _, acquired := e.(neli.LeaderAcquired); acquired {
				<-c.free
			}
		},
		holds: func(c *cell) {
			b := c.Work("b", c.configure)
			c.Eventually(3*time.Minute, "b leads", func() bool { return b.IsLeaderOf(0) && b.IsLeaderOf(1) })
		}},
	{does: "LeaderRevoked of one role takes 45 s",
		barrier: func(c *cell, e neli.Event) {
			if _, revoked := e.(neli.LeaderRevoked); revoked {
				c.Pass(slow)
			}
		},
		holds: func(c *cell) {
			c.Pass(time.Minute)
			c.leads(0, 1)
			require.NoError(c, c.a.SetRoles(1))
			end := time.Now().Add(time.Minute)
			for time.Now().Before(end) {
				c.Pass(100 * time.Millisecond)
				c.leads(0) // throughout
			}
			require.Equal(c, []string{"acquired"}, c.kindsOf(0))
			require.Equal(c, []string{"acquired", "revoked"}, c.kindsOf(1))
		}},
	{does: "LeaderRevoked never returns", modes: "open small",
		barrier: func(c *cell, e neli.Event) {
			if _, revoked := e.(neli.LeaderRevoked); revoked {
				<-c.free
			}
		},
		holds: func(c *cell) {
			c.Pass(time.Minute)
			b := c.Work("b", c.configure)
			c.Pass(20 * time.Second)
			began := time.Now()
			go func() { _ = c.a.Transfer(c.Context(), 0, "b") }()
			c.Eventually(20*time.Second, "b leads role 0", func() bool { return b.IsLeaderOf(0) })
			// In Lead the barrier is not part of the work, but the role is kept for the barrier until the deadline.
			require.InDelta(c, 10, time.Since(began).Seconds(), 1, "the deadline is exact")
			c.Pass(5 * time.Minute)
			c.leads(1)
			// b crashes. a's barrier is busy, so a takes nothing, and d takes b's role.
			d := c.Work("d", c.configure)
			c.Pass(20 * time.Second)
			c.Crash(b)
			c.Eventually(15*time.Second, "d leads role 0", func() bool { return d.IsLeaderOf(0) })
		}},
	{does: "LeaderFenced takes 45 s",
		barrier: func(c *cell, e neli.Event) {
			if _, fenced := e.(neli.LeaderFenced); fenced {
				c.Pass(slow)
			}
		},
		holds: func(c *cell) {
			c.Pass(time.Minute)
			c.cutOff()
			c.Eventually(2*time.Minute, "a leads again", func() bool { return c.a.IsLeaderOf(0) })
			require.Equal(c, []string{"acquired", "fenced", "acquired"}, c.kindsOf(0))
		}},
	{does: "LeaderFenced never returns",
		barrier: func(c *cell, e neli.Event) {
			if _, fenced := e.(neli.LeaderFenced); fenced {
				<-c.free
			}
		},
		holds: func(c *cell) {
			c.Pass(time.Minute)
			c.cutOff()
			c.Pass(time.Minute)
			b := c.Work("b", c.configure)
			c.Eventually(time.Minute, "b leads", func() bool { return b.IsLeaderOf(0) && b.IsLeaderOf(1) })
		}},
	{does: "the barrier panics on the application's goroutine", drivers: "Lead Pulse",
		barrier: func(c *cell, e neli.Event) {
			if c.count(e) == 1 {
				panic("boom")
			}
		},
		holds: func(c *cell) {
			c.Pass(time.Minute) // the driver recovers, and drives again
			c.leads(0)
			for i, kind := range c.kindsOf(0) {
				require.Equal(c, i%2 == 0, kind == "acquired", "each acquisition is followed by one end")
			}
		}},
	{does: "the task takes 45 s", drivers: "Background Pulse", modes: "open assigned small",
		holds: func(c *cell) {
			c.Pass(20 * time.Second)
			c.set(func() { c.task = func() { c.Pass(slow) } })
			b := c.Work("b", c.configure)
			c.Eventually(time.Minute, "b leads", func() bool { return b.IsLeaderOf(0) && b.IsLeaderOf(1) })
			c.Eventually(time.Minute, "a is told", func() bool { return len(c.kindsOf(0)) > 1 })
			require.Equal(c, neli.ReasonNotPulsed, c.reasonOf("fenced"))
			line := c.said("the application does not pulse: it counts as hung after MaxPulseInterval", slog.LevelWarn, 1)
			require.InDelta(c, 20.5, line.attrs["after"].Duration().Seconds(), 0.5)
			where := map[string]string{"Background": "the task of Background", "Pulse": "outside of the library"}
			require.Equal(c, where[c.driver], line.attrs["in"].String())
		}},
	{does: "a function of Lead never returns", drivers: "Lead",
		config: func(c *cell, _ *neli.Config) {
			c.run = func(context.Context, neli.Leadership) error { <-c.free; return nil }
		},
		holds: func(c *cell) {
			c.Pass(10 * time.Minute)
			c.leads(0, 1)
		}},
	{does: "a function of Lead reports the end of its context in words of its own", drivers: "Lead",
		config: func(c *cell, _ *neli.Config) {
			c.run = func(ctx context.Context, l neli.Leadership) error {
				<-ctx.Done()
				return [...]error{errors.New("rpc error: code = Canceled"), fmt.Errorf("i/o timeout: %w", io.ErrUnexpectedEOF)}[l.Role]
			}
		},
		holds: func(c *cell) {
			c.Pass(time.Minute)
			c.cutOff()
			c.Eventually(2*time.Minute, "a leads again", func() bool { return c.a.IsLeaderOf(0) && c.a.IsLeaderOf(1) })
			c.said("a function returned an error after its context had ended", slog.LevelInfo, 2)
			c.end()
			require.NoError(c, c.err)
		}},
	{does: "a function of Lead returns an error of its own", drivers: "Lead",
		config: func(c *cell, _ *neli.Config) {
			c.run = func(ctx context.Context, l neli.Leadership) error {
				if l.Role == 1 {
					return errBoom
				}
				<-ctx.Done()
				return errors.New("because of role 1")
			}
		},
		holds: func(c *cell) {
			c.drive.Wait()
			require.ErrorIs(c, c.err, errBoom)
			require.EqualError(c, c.err, "boom")
			require.False(c, c.a.IsLeader())
		}},
	{does: "Healthy takes 45 s, once",
		config: func(c *cell, cfg *neli.Config) {
			var calls atomic.Int64
			cfg.Healthy = func() error {
				if calls.Add(1) == 60 {
					c.Pass(slow)
				}
				return nil
			}
		},
		holds: func(c *cell) {
			c.Pass(50 * time.Second)
			c.leads(0)
			c.Pass(3 * time.Minute)
			c.leads(0)
			require.Equal(c, []string{"acquired", "revoked", "acquired"}, c.kindsOf(0))
			require.Equal(c, neli.ReasonUnhealthy, c.reasonOf("revoked"))
		}},
	{does: "Preference never returns", modes: "open small",
		config: func(c *cell, cfg *neli.Config) {
			cfg.Preference = func(neli.Member, int) int { <-c.free; return 0 }
		},
		holds: func(c *cell) {
			c.Pass(time.Minute)
			c.leads(0) // alone: a second member's records would wake a process whose beats wait
			c.Work("b", func(cfg *neli.Config) { c.configure(cfg); cfg.Preference = nil })
			for range 600 {
				c.Pass(100 * time.Millisecond)
				c.leads(0)
			}
			c.said("Config.Preference has not returned: new members are not preferred", slog.LevelWarn, 1)
		}},
	{does: "Requests never returns", modes: "open small",
		config: func(c *cell, cfg *neli.Config) {
			cfg.Requests = func(neli.Request) error { <-c.free; return nil }
		},
		holds: func(c *cell) {
			c.Pass(time.Minute)
			b := c.Work("b", func(cfg *neli.Config) { c.configure(cfg); cfg.Requests = nil })
			c.Pass(10 * time.Second)
			require.ErrorIs(c, b.Ask(c.Context(), neli.Request{Role: 0, StepDown: true}), neli.ErrNoAnswer)
			c.leads(0)
			c.said("Config.Requests has not returned: other requests wait", slog.LevelWarn, 1)
		}},
	{does: "a consumer of Watch does not come back", modes: "open assigned small",
		holds: func(c *cell) {
			go func() {
				for range c.a.Watch(c.Context()) {
					<-c.free
				}
			}()
			c.Pass(5 * time.Minute)
			c.leads(0, 1)
		}},
	{does: "the log's handler takes 45 s for each line", config: logsBy(func(c *cell) error {
		select {
		case <-time.After(slow):
		case <-c.free:
		}
		return nil
	}), holds: ordinaryLife},
	{does: "the log's handler never returns", config: logsBy(func(c *cell) error { <-c.free; return nil }), holds: ordinaryLife},
	{does: "the log's handler panics", config: logsBy(func(*cell) error { panic("boom") }), holds: ordinaryLife},
	{does: "the log's handler fails", config: logsBy(func(*cell) error { return io.ErrClosedPipe }), holds: ordinaryLife},
	{does: "the log's handler ends its goroutine", config: logsBy(func(*cell) error { runtime.Goexit(); return nil }), holds: ordinaryLife},
}

var errBoom = errors.New("boom")

// logsBy configures a log whose handler calls take.
func logsBy(take func(c *cell) error) func(c *cell, cfg *neli.Config) {
	return func(c *cell, cfg *neli.Config) {
		cfg.Logger = slog.New(takes{logLines: c.lines, take: func() error { return take(c) }})
	}
}

type takes struct {
	logLines
	take func() error
}

func (h takes) Handle(ctx context.Context, r slog.Record) error {
	if err := h.take(); err != nil {
		return err
	}
	return h.logLines.Handle(ctx, r)
}

func (h takes) WithAttrs(attrs []slog.Attr) slog.Handler {
	return takes{h.logLines.WithAttrs(attrs).(logLines), h.take}
}

// ordinaryLife checks what must work with any log handler: leading, losing a role, a hand-over, and
// Close within its bound.
func ordinaryLife(c *cell) {
	c.Pass(time.Minute)
	c.leads(0, 1)
	c.cutOff()
	c.Eventually(time.Minute, "a leads again", func() bool { return c.a.IsLeaderOf(0) && c.a.IsLeaderOf(1) })
	b := c.Work("b", func(cfg *neli.Config) {
		c.configure(cfg)
		cfg.Logger = nil
	})
	c.Pass(20 * time.Second)
	if c.mode == "open" || c.mode == "small" {
		began := time.Now()
		require.NoError(c, c.a.Transfer(c.Context(), 0, "b"))
		require.Less(c, time.Since(began), 2*time.Second)
	}
	began := time.Now()
	go c.end()
	if err := c.a.Close(); strings.Contains(c.Name(), "never") {
		require.ErrorContains(c, err, "the handler of Config.Logger has not returned within")
	}
	require.LessOrEqual(c, time.Since(began), c.closes())
	c.Eventually(time.Second, "b leads", func() bool { return b.IsLeaderOf(0) && b.IsLeaderOf(1) })
	if strings.Contains(c.Name(), "never") {
		require.Positive(c, b.Stats().Records)
		require.Positive(c, c.a.Stats().LogLinesWaiting)
	}
	for _, what := range []string{"panics", "fails", "ends its goroutine"} {
		if strings.Contains(c.Name(), strings.ReplaceAll(what, " ", "_")) {
			require.Positive(c, c.a.Stats().LogLinesLost)
		}
	}
}

// closes is the documented bound of Close with a handler that hangs.
func (c *cell) closes() time.Duration {
	bound := 10*time.Second + 16*time.Second // DrainTimeout, and what Close adds
	switch c.mode {
	case "open", "small":
		return bound + time.Second
	case "assigned":
		return bound + 4*time.Second
	}
	return bound + 18*time.Second // HeartbeatTimeout at most
}

func TestApplicationCodeMayHangPanicOrFail(t *testing.T) {
	for _, r := range applicationRows {
		t.Run(r.does, func(t *testing.T) {
			for _, mode := range []string{"open", "assigned", "non-exclusive", "small"} {
				for _, driver := range []string{"Lead", "Background", "Pulse"} {
					if (r.modes == "" || slices.Contains(strings.Fields(r.modes), mode)) && (r.drivers == "" || strings.Contains(r.drivers, driver)) {
						t.Run(mode+" "+driver, func(t *testing.T) { r.in(t, mode, driver) })
					}
				}
			}
		})
	}
}

func (r row) in(t *testing.T, mode, driver string) {
	var c *cell
	scenario.Simulate(t, nelitest.Options{}, func(cl *cluster) {
		cl.Roles, cl.Period, cl.Exclusive = 2, 50*time.Millisecond, mode != "non-exclusive"
		if mode == "small" {
			cl.Logs = nelitest.NewSmallLogs(3, 10*time.Millisecond)
		}
	}, func(cl *cluster) {
		c = &cell{cluster: cl, mode: mode, driver: driver, lines: newLogLines(), free: make(chan struct{})}
		c.run = func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil }
		c.task = func() { c.Pass(100 * time.Millisecond) }
		release := sync.OnceFunc(func() { close(c.free) })
		defer func() { release(); c.end(); _ = c.a.Close() }()
		a := c.Join("a", func(cfg *neli.Config) {
			c.configure(cfg)
			cfg.Logger = slog.New(c.lines)
			if r.config != nil {
				r.config(c, cfg)
			}
		})
		c.set(func() { c.a = a })
		if r.barrier != nil {
			c.a.Upon(func(e neli.Event) { r.barrier(c, e) })
		}
		c.start()
		r.holds(c)
	})
}

// While the barrier is at work on one role, this process claims no other role, and gives back any
// that the application was not told of.
func TestNoRoleIsClaimedWhileTheBarrierRuns(t *testing.T) {
	simulateWith(t, nelitest.Options{}, func(c *cluster) { c.Roles, c.Period = 2, 50*time.Millisecond }, func(c *cluster) {
		free := make(chan struct{})
		defer close(free)
		one := func(cfg *neli.Config) { open(cfg); cfg.Roles, cfg.DisableRebalance = 1, true }
		a := c.Join("a", one)
		a.Upon(func(e neli.Event) {
			if _, acquired := e.(neli.LeaderAcquired); acquired {
				<-free
			}
		})
		a.Start()
		c.Leader(0, 2*silence)
		b := c.Work("b", one)
		c.Pass(time.Second)
		require.NoError(c, a.SetRoles(2))
		c.Pass(time.Second)
		require.EqualValues(c, 2, a.Stats().TermsStarted, "a has claimed role 1, too")
		require.NoError(c, b.SetRoles(2))
		c.Eventually(5*time.Second, "b leads role 1", func() bool { return b.IsLeaderOf(1) })
		require.Equal(c, map[neli.Reason]uint64{neli.ReasonNotPulsed: 1}, a.Stats().TermsEnded)
		c.Crash(b)
		c.Pass(time.Minute)
		require.EqualValues(c, 2, a.Stats().TermsStarted, "a claims nothing while it cannot tell the application")
		require.True(c, a.IsLeaderOf(0))
	})
}

// A call that waits for its turn does nothing, so the log reports it and names both calls.
func TestCallThatWaitsForItsTurnIsReported(t *testing.T) {
	const text = "a call waits for another one to end: only one of Lead, Background and Pulse works at a time"
	for _, first := range []string{"Lead", "Background"} {
		for _, second := range []string{"Lead", "Background", "Pulse"} {
			t.Run(second+" beside "+first, func(t *testing.T) {
				simulate(t, nelitest.Options{}, func(c *cluster) {
					c.Aged(1) // a leader's Pulse does not wait
					lines := newLogLines()
					a := c.Join("a", logsTo(lines))
					ctx, stop := context.WithCancel(c.Context())
					var calls sync.WaitGroup
					call := func(how string) {
						calls.Go(func() {
							switch how {
							case "Lead":
								require.NoError(c, a.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil }))
							case "Background":
								p, err := a.Background(func() { c.Pass(time.Millisecond) })
								require.NoError(c, err)
								<-ctx.Done()
								require.NoError(c, p.Close())
							case "Pulse":
								for ctx.Err() == nil {
									_, err := a.Pulse(3 * time.Second)
									require.NoError(c, err)
									c.Pass(time.Second)
								}
							}
						})
					}
					call(first)
					c.Pass(100 * time.Millisecond)
					call(second)
					c.Pass(900 * time.Millisecond)
					require.Empty(c, lines.said(text))
					c.Pass(time.Minute)
					said := lines.said(text)
					require.Len(c, said, 1, "once")
					require.Equal(c, slog.LevelWarn, said[0].level)
					require.Regexp(c, "^"+first+` \(application_test.go:\d+\)$`, said[0].attrs["waits_for"].String())
					require.Regexp(c, "^"+second+`( \(application_test.go:\d+\))?$`, said[0].attrs["call"].String())
					stop()
					calls.Wait()
				})
			})
		}
	}
}

// A method that a go statement calls has no caller, so the log line names the method only.
func TestCallByAGoStatementIsReportedWithoutItsPlace(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		lines := newLogLines()
		a := c.Join("a", logsTo(lines))
		ctx, stop := context.WithCancel(c.Context())
		defer stop()
		go a.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil })
		c.Pass(time.Millisecond)
		_, err := a.Pulse(2 * time.Second)
		require.NoError(c, err)
		said := lines.said("a call waits for another one to end: only one of Lead, Background and Pulse works at a time")
		require.Len(c, said, 1)
		require.Equal(c, "Lead", said[0].attrs["waits_for"].String())
	})
}

// configure sets the cell's mode.
func (c *cell) configure(cfg *neli.Config) {
	cfg.DisableRebalance = true
	switch c.mode {
	case "open":
		cfg.Nomination = neli.NominationOpen
	case "non-exclusive":
		cfg.Mode, cfg.Partitions = neli.NonExclusive, 2 // two partitions, so that SetRoles can revoke one
	case "small":
		cfg.Partitions = 0
	}
}

// start drives a like an application that recovers from panics.
func (c *cell) start() {
	var ctx context.Context
	ctx, c.stop = context.WithCancel(c.Context())
	recovering := func(drive func()) {
		defer func() {
			if r := recover(); r != nil {
				require.Equal(c, "boom", r)
			}
		}()
		drive()
	}
	c.drive.Go(func() {
		switch c.driver {
		case "Lead":
			for over := false; !over; {
				recovering(func() { c.err = c.a.Lead(ctx, c.run); over = true })
			}
		case "Background":
			p, err := c.a.Background(c.work)
			require.NoError(c, err)
			<-ctx.Done()
			_ = p.Close()
		case "Pulse":
			for ctx.Err() == nil && c.err == nil {
				recovering(func() {
					var leads bool
					if leads, c.err = c.a.Pulse(time.Second); leads {
						c.work()
					}
				})
			}
		}
	})
}

func (c *cell) work() {
	c.mu.Lock()
	task := c.task
	c.mu.Unlock()
	task()
}

// set accesses data that the application's code shares with the test, under a lock.
func (c *cell) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// end ends the driver.
func (c *cell) end() {
	c.stop()
	c.drive.Wait()
}

func (c *cell) leads(roles ...int) {
	c.Helper()
	for _, role := range roles {
		if !c.a.IsLeaderOf(role) {
			require.FailNow(c, fmt.Sprintf("after %v a does not lead role %d: %v", time.Since(c.Began), role, c.a.Events()))
		}
	}
}

// cutOff separates a from the broker until it has lost its roles.
func (c *cell) cutOff() {
	c.Broker.CutOff("a", nelitest.LinkAll)
	defer c.Broker.Restore("a", nelitest.LinkAll)
	for log := range 3 {
		if c.Logs != nil {
			c.Logs.CutOff("a", log, nelitest.LinkAll)
			defer c.Logs.Restore("a", log)
		}
	}
	c.Eventually(time.Minute, "a is fenced", func() bool { return !c.a.IsLeader() })
	c.Pass(time.Second)
}

// count returns the number of events that a was given, including the present one.
func (c *cell) count(neli.Event) int { return len(c.a.Events()) }

// reasonOf returns the reason of the first event of a kind.
func (c *cell) reasonOf(kind string) neli.Reason {
	c.Helper()
	i := slices.Index(c.a.Kinds(), kind)
	require.GreaterOrEqual(c, i, 0, kind)
	switch e := c.a.Events()[i].(type) {
	case neli.LeaderRevoked:
		return e.Reason
	case neli.LeaderFenced:
		return e.Reason
	}
	return 0
}

// kindsOf returns the kinds of the events of one role.
func (c *cell) kindsOf(role int) (out []string) {
	for i, e := range c.a.Events() {
		var of []int
		switch e := e.(type) {
		case neli.LeaderAcquired:
			of = e.Roles()
		case neli.LeaderRevoked:
			of = e.Roles()
		case neli.LeaderFenced:
			of = e.Roles()
		}
		if slices.Contains(of, role) {
			out = append(out, c.a.Kinds()[i])
		}
	}
	return out
}

// said requires that a text was logged a given number of times, and returns the first of these lines.
func (c *cell) said(text string, level slog.Level, times int) logLine {
	c.Helper()
	lines := c.lines.said(text)
	require.Len(c, lines, times, text)
	require.Equal(c, level, lines[0].level)
	return lines[0]
}
