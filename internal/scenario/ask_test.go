package scenario

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// mood is how an application answers requests.
type mood struct {
	mu   sync.Mutex
	says error // its answer
	got  []neli.Request
}

func (m *mood) decides(r neli.Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = append(m.got, r)
	return m.says
}

func (m *mood) is(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.says = err
}

func (m *mood) asked() []neli.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]neli.Request(nil), m.got...)
}

func (m *mood) config(cfg *neli.Config) {
	Open(cfg)
	cfg.Requests, cfg.DisableRebalance = m.decides, true
}

// pair starts two members that take requests, a and b, and an observer. a leads.
func pair(c *Cluster, m *mood) (a, b, o *Member) {
	c.Helper()
	a = c.Work("a", m.config)
	require.Same(c, a, c.Leader(0, 2*silence))
	b = c.Work("b", m.config)
	o = c.Join("o", func(cfg *neli.Config) { Open(cfg); observer(cfg) })
	c.Pass(6 * time.Second)
	return a, b, o
}

// An observer asks the holder to hand over, and to step down. The holder does so in good order, within round trips.
func TestAsk(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		var m mood
		a, b, o := pair(c, &m)
		require.Zero(c, o.Stats().Appended)
		ctx := c.atMost(time.Minute)
		c.Gap()
		require.NoError(c, o.Ask(ctx, neli.Request{Role: 0, To: "b"}))
		require.True(c, b.IsLeader())
		require.LessOrEqual(c, c.Gap(), 20*time.Millisecond)
		require.Equal(c, neli.ReasonTransferred, a.Last().(neli.LeaderRevoked).Reason)
		got := m.asked()
		require.Len(c, got, 1)
		require.Equal(c, "b", got[0].To)
		require.Equal(c, "o", got[0].RequesterName)
		require.NotEmpty(c, got[0].RequesterID)

		require.NoError(c, o.Ask(ctx, neli.Request{Role: 0, StepDown: true}))
		require.False(c, b.IsLeader())
		require.Equal(c, neli.ReasonSteppedDown, b.Last().(neli.LeaderRevoked).Reason)
		c.Eventually(20*time.Millisecond, "a leads", a.IsLeader)
		require.True(c, m.asked()[1].StepDown)
		c.orderly()

		// A member may ask, too, and name the addressee by its id.
		c.Pass(away)
		require.NoError(c, b.Ask(ctx, neli.Request{Role: 0, To: b.ID()}))
		c.Eventually(10*time.Millisecond, "b leads", b.IsLeader)
		require.ErrorContains(c, b.Ask(ctx, neli.Request{Role: 0, StepDown: true}), "this process holds the role itself")

		require.Equal(c, []uint64{2, 0}, []uint64{a.Stats().RequestsAccepted, a.Stats().RequestsRefused})
		require.Equal(c, uint64(1), b.Stats().RequestsAccepted)
		require.Equal(c, uint64(2), o.Stats().Appended, "the observer has written something besides its requests")
		require.Zero(c, o.Stats().RequestsAccepted+o.Stats().RequestsRefused)
		requests := 0
		for _, r := range c.Records(0, lease.Ping) {
			if Decode(r.Value, "app").Request != nil {
				requests++
			}
		}
		require.Equal(c, 3, requests)
	})
}

// Config.Requests may end its goroutine, as t.FailNow does. That refuses the request, and the next one is answered.
func TestRequestsCallbackThatEndsItsGoroutine(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		var ends atomic.Bool
		ends.Store(true)
		a := c.Work("a", func(cfg *neli.Config) {
			Open(cfg)
			cfg.Requests = func(neli.Request) error {
				if ends.Load() {
					runtime.Goexit()
				}
				return nil
			}
		})
		c.Leader(0, 2*silence)
		o := c.Join("o", func(cfg *neli.Config) { Open(cfg); observer(cfg) })
		c.Pass(6 * time.Second)
		err := o.Ask(c.atMost(time.Minute), neli.Request{Role: 0, StepDown: true})
		require.ErrorIs(c, err, neli.ErrRefused)
		require.ErrorContains(c, err, "ended its goroutine")
		require.True(c, a.IsLeader())
		ends.Store(false)
		require.NoError(c, o.Ask(c.atMost(time.Minute), neli.Request{Role: 0, StepDown: true}))
	})
}

// A holder that refuses a request goes on leading, and the asker gets the holder's reason.
func TestAskIsRefused(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		var m mood
		a, _, o := pair(c, &m)
		ctx := c.atMost(time.Minute)
		told := len(a.Kinds())
		m.is(errors.New("not before the report is done \x1b[2J"))
		for _, r := range []neli.Request{{Role: 0, To: "b"}, {Role: 0, StepDown: true}} {
			err := o.Ask(ctx, r)
			require.ErrorIs(c, err, neli.ErrRefused)
			require.ErrorContains(c, err, `role 0`)
			require.ErrorContains(c, err, `"not before the report is done \x1b[2J"`)
		}
		require.Equal(c, uint64(2), a.Stats().RequestsRefused)
		m.is(nil)
		c.Pass(10 * time.Second)
		for _, to := range []string{"nobody", "o"} {
			err := o.Ask(ctx, neli.Request{Role: 0, To: to})
			require.ErrorIs(c, err, neli.ErrNotDone, to)
			require.ErrorContains(c, err, "no such member")
			require.Equal(c, 1, strings.Count(err.Error(), "neli: Ask"), err)
			require.NotContains(c, err.Error(), "Transfer:", "the error names the holder's own call")
			c.Pass(time.Second)
		}
		require.ErrorIs(c, o.Ask(ctx, neli.Request{Role: 0, To: "a"}), neli.ErrLeadsAlready)
		require.Len(c, a.Kinds(), told, "the application was told of something")
		require.True(c, a.IsLeader())
	})
}

// A member takes no requests unless it was configured to.
func TestAskOfAMemberWithoutRequests(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a := c.Work("a", Open)
		c.Leader(0, 2*silence)
		o := c.Join("o", func(cfg *neli.Config) { Open(cfg); observer(cfg) })
		err := o.Ask(c.atMost(time.Minute), neli.Request{Role: 0, StepDown: true}) // sent before anything is known
		require.ErrorIs(c, err, neli.ErrRefused)
		require.ErrorContains(c, err, "it takes no requests")
		require.Equal(c, uint64(1), a.Stats().RequestsRefused)
		c.Pass(time.Minute)
		require.Equal(c, []string{"acquired"}, a.Kinds())
	})
}

// With Assigned nomination, a holder may be asked to step down.
func TestAskWithAssignedNomination(t *testing.T) {
	simulate(t, nelitest.Options{RebalanceTime: 300 * time.Millisecond}, func(c *Cluster) {
		var m mood
		with := func(cfg *neli.Config) { cfg.Requests = m.decides }
		a := c.Work("a", with)
		c.Leader(0, 2*silence)
		b := c.Work("b", with)
		c.Pass(10 * time.Second)
		ctx := c.atMost(time.Minute)
		follower := map[bool]*Member{true: b, false: a}[a.IsLeader()]
		leader := c.Leader(0, time.Second)
		err := follower.Ask(ctx, neli.Request{Role: 0, To: follower.As})
		require.ErrorIs(c, err, neli.ErrRefused)
		require.ErrorContains(c, err, "the group says who may claim")
		require.NoError(c, follower.Ask(ctx, neli.Request{Role: 0, StepDown: true}))
		require.False(c, leader.IsLeader())
		c.Eventually(time.Second, "the other member leads", follower.IsLeader)
	})
}

// An invalid request gets an error that lists everything that is wrong with it.
func TestAskRefusesInvalidRequests(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		var none context.Context
		var m mood
		a, b, o := pair(c, &m)
		ctx := c.atMost(time.Hour)
		require.ErrorContains(c, o.Ask(none, neli.Request{StepDown: true}), "ctx is nil")
		err := o.Ask(ctx, neli.Request{Role: 7, StepDown: true, To: "\xff"})
		for _, what := range []string{`Request.Role: "7" must be between 0 and 0`, `Request.To`, "must not be set with StepDown", "256 bytes of UTF-8"} {
			require.ErrorContains(c, err, what)
		}
		require.ErrorContains(c, o.Ask(ctx, neli.Request{}), "Request.To")
		require.ErrorContains(c, o.Ask(ctx, neli.Request{Role: -1, StepDown: true}), "Request.Role")
		over, stop := context.WithCancel(ctx)
		stop()
		require.ErrorIs(c, o.Ask(over, neli.Request{StepDown: true}), context.Canceled)
		c.Pass(10 * time.Second) // the last request was not cancelled
		c.Eventually(20*time.Second, "one of them leads again", func() bool { return a.IsLeader() || b.IsLeader() })

		for _, x := range []*Member{a, b} {
			require.NoError(c, x.Close())
		}
		c.Pass(time.Second)
		require.ErrorIs(c, o.Ask(ctx, neli.Request{StepDown: true}), neli.ErrVacant)
		require.NoError(c, o.Close())
		require.ErrorIs(c, o.Ask(ctx, neli.Request{StepDown: true}), neli.ErrClosed)
	})
	Simulate(t, nelitest.Options{}, Overlapping, func(c *Cluster) {
		n := c.Join("n", shared)
		require.ErrorContains(c, n.Ask(c.atMost(time.Minute), neli.Request{StepDown: true}), "needs Mode Exclusive")
	})
}

// An observer that may not write can watch but not ask, and its error says why. A holder that is
// cut off does not answer.
func TestAskThatDoesNotArrive(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		var m mood
		a, b, o := pair(c, &m)
		c.Broker.Refuse("o", nelitest.LinkAppends, kafka.ErrTopicAuthorization)
		err := o.Ask(c.atMost(time.Hour), neli.Request{StepDown: true})
		require.ErrorIs(c, err, neli.ErrNoAnswer)
		require.ErrorIs(c, err, kafka.ErrTopicAuthorization)
		require.Equal(c, neli.StateLive, o.State())
		short, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		err = o.Ask(short, neli.Request{StepDown: true})
		require.ErrorIs(c, err, context.DeadlineExceeded)
		require.ErrorContains(c, err, "the log does not take it")
		_, ok := o.Holder(0)
		require.True(c, ok)
		c.Broker.Refuse("o", nelitest.LinkAppends, nil)

		c.Broker.CutOff("a", nelitest.LinkReads)
		require.ErrorIs(c, o.Ask(c.atMost(time.Hour), neli.Request{To: "a"}), neli.ErrLeadsAlready)
		err = o.Ask(c.atMost(time.Hour), neli.Request{StepDown: true})
		require.ErrorIs(c, err, neli.ErrNotDone, "does not report that b leads by now")
		require.True(c, b.IsLeader())
		require.Empty(c, m.asked())
		require.False(c, a.IsLeader())
	})
}

// The application may take long to answer a request, or never return. Everything else goes on, and
// Close says what it waits for.
func TestRequestsThatHang(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		hang := make(chan struct{})
		release := sync.OnceFunc(func() { close(hang) })
		defer release()
		var calls atomic.Int64
		a := c.Work("a", func(cfg *neli.Config) {
			Open(cfg)
			cfg.Requests = func(neli.Request) error { calls.Add(1); <-hang; return nil }
		})
		c.Leader(0, 2*silence)
		o := c.Join("o", func(cfg *neli.Config) { Open(cfg); observer(cfg) })
		for range 3 {
			err := o.Ask(c.atMost(10*time.Second), neli.Request{StepDown: true})
			require.ErrorIs(c, err, context.DeadlineExceeded)
			require.ErrorContains(c, err, "the holder has not answered")
		}
		require.ErrorIs(c, o.Ask(c.atMost(time.Hour), neli.Request{StepDown: true}), neli.ErrNoAnswer)
		require.EqualValues(c, 1, calls.Load(), "asked about two requests at once")
		require.Equal(c, []string{"acquired"}, a.Kinds())
		require.ErrorContains(c, a.Close(), "Config.Requests, Config.LoginToken or Config.Healthy has not returned")
		release()
		require.NoError(c, a.Close())
		require.EqualValues(c, 1, calls.Load(), "asked again after Close")
	})
}

// Logs escape the names that other members give themselves.
func TestHostileRequestsInLogs(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		var m mood
		var lines raw
		c.Work("a", func(cfg *neli.Config) { m.config(cfg); cfg.Logger = slog.New(&lines) })
		c.Leader(0, 2*silence)
		o := c.Join("o", func(cfg *neli.Config) { Open(cfg); observer(cfg); cfg.Name = "x\x1b[2J\u202e" })
		for _, says := range []error{nil, errors.New("no")} {
			m.is(says)
			require.Error(c, o.Ask(c.atMost(time.Minute), neli.Request{Role: 0, To: "y\x1b[2J\nlevel=ERROR"}))
		}
		require.Equal(c, "x\x1b[2J\u202e", m.asked()[0].RequesterName, "the application does not get the name as it was sent")
		require.Contains(c, lines.String(), "request refused")
		require.Contains(c, lines.String(), "request accepted")
		require.NotContains(c, lines.String(), "\x1b")
		require.NotContains(c, lines.String(), "\u202e")
		require.NotContains(c, lines.String(), "\nlevel=ERROR")
	})
}

// raw is a handler that writes values unescaped, as an application's handler may.
type raw struct{ said.Text }

func (h *raw) Enabled(context.Context, slog.Level) bool { return true }
func (h *raw) WithGroup(string) slog.Handler            { return h }
func (h *raw) WithAttrs([]slog.Attr) slog.Handler       { return h }

func (h *raw) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.Key + "=" + a.Value.String(); return true })
	_, err := h.Write([]byte(line + ";"))
	return err
}
