package shards_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/goneli/neli/shards"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is a call of one of the Functions.
type call struct {
	what       string
	who        string
	shard      int
	begin, end time.Time // end: zero while it is at work
	ok         bool      // Prepare has returned nil
	why        error     // Abandon's, or the cause with which the context has ended
	ctx        context.Context
	token      int64
}

// stage is a broker, members with shards on it, and all calls of their functions.
type stage struct {
	*testing.T
	broker *nelitest.Broker

	mu    sync.Mutex
	calls []*call
}

// member is a process with shards. Fields that are functions replace what it does.
type member struct {
	*stage
	name    string
	cfg     neli.Config
	warmUp  time.Duration
	prepare func(ctx context.Context, shard int) error
	serve   func(ctx context.Context, l neli.Leadership) error
	breaks  [count]chan error // what Serve is to return
	later   bool              // the test calls run

	set  *shards.Set
	n    *neli.Neli
	stop context.CancelCauseFunc
	over chan struct{} // closed when Run has returned err
	err  error
}

const count = 4 // of shards

// onStage runs a test in simulated time. At its end all members have left nothing behind.
func onStage(t *testing.T, test func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, broker: nelitest.NewBroker(nelitest.Options{})}
		t.Cleanup(s.broker.Close)
		test(s)
	})
}

// start starts a member, which takes a second to prepare a shard.
func (s *stage) start(name string, opts ...func(*member)) *member {
	s.Helper()
	m := &member{stage: s, name: name, warmUp: time.Second, breaks: [count]chan error{1: make(chan error)}}
	m.cfg = neli.Config{LeaderGroupID: "carts", Name: name, Provider: s.broker.Provider(name), Roles: count, DisableRebalance: true}
	m.prepare = func(ctx context.Context, _ int) error { return sleep(ctx, m.warmUp) }
	m.serve = func(ctx context.Context, l neli.Leadership) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-m.breaks[l.Role]:
			return err
		}
	}
	m.cfg.Prepare = func(ctx context.Context, role int) error { return m.set.Prepare(ctx, role) }
	for _, opt := range opts {
		opt(m)
	}
	var err error
	m.set, err = shards.New(count, shards.Functions{
		Prepare: func(ctx context.Context, shard int) error {
			c, ok := s.begin("prepare", name, shard, ctx, 0), false
			defer func() { s.done(c, ok) }()
			err := m.prepare(ctx, shard)
			ok = err == nil
			return err
		},
		Serve: func(ctx context.Context, l neli.Leadership) error {
			c := s.begin("serve", name, l.Role, ctx, l.Token)
			defer s.done(c, false)
			return m.serve(ctx, l)
		},
		Abandon: func(shard int, why error) {
			ctx, end := context.WithCancelCause(s.Context())
			end(why)
			c := s.begin("abandon", name, shard, ctx, 0)
			time.Sleep(10 * time.Millisecond)
			s.done(c, false)
		},
	})
	require.NoError(s, err)
	m.n, err = neli.New(m.cfg)
	require.NoError(s, err)
	s.Cleanup(m.close)
	if !m.later {
		m.run()
	}
	return m
}

// run calls Run.
func (m *member) run() {
	ctx, stop := context.WithCancelCause(context.Background())
	over := make(chan struct{})
	m.stop, m.over = stop, over
	go func() {
		defer close(over)
		m.err = m.set.Run(ctx, m.n)
		assert.Empty(m, m.find(func(c *call) bool { return c.who == m.name && c.end.IsZero() }), "at work after Run")
		for shard := range count {
			assert.Equal(m, shards.Idle, m.state(shard))
		}
	}()
}

func (m *member) state(shard int) shards.State {
	is, err := m.set.State(shard)
	assert.NoError(m, err)
	return is
}

// close ends a member in good order. Each Prepare that was ready must have been followed by a Serve or an Abandon.
func (m *member) close() {
	if m.stop == nil { // never run
		assert.NoError(m, m.n.Close())
		return
	}
	m.stop(nil)
	assert.NoError(m, m.n.Close())
	<-m.over
	m.mu.Lock()
	defer m.mu.Unlock()
	assert.Empty(m, m.owed(m.name), "prepared, and neither served nor abandoned")
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin notes that a call begins. It must be the only call for the shard in its process. A Serve must be the only one
// in all processes whose context is valid.
func (s *stage) begin(what, who string, shard int, ctx context.Context, token int64) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &call{what: what, who: who, shard: shard, begin: time.Now(), ctx: ctx, token: token}
	for _, other := range s.calls {
		if other.shard != shard || !other.end.IsZero() {
			continue
		}
		assert.NotEqual(s, who, other.who, "shard %d: %s while %s is at work", shard, what, other.what)
		assert.False(s, what == "serve" && other.what == what && other.ctx.Err() == nil, "shard %d: %s serves it beside %s", shard, who, other.who)
	}
	if what != "prepare" {
		assert.Contains(s, s.owed(who), shard, "shard %d: %s of what is not prepared", shard, what)
	}
	s.calls = append(s.calls, c)
	return c
}

func (s *stage) done(c *call, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.end, c.ok, c.why = time.Now(), ok, context.Cause(c.ctx)
}

// owed returns the shards that a member has prepared, and neither served nor abandoned.
func (s *stage) owed(who string) (owed []int) {
	for _, c := range s.calls {
		switch {
		case c.who != who:
		case c.what == "prepare" && c.ok:
			owed = append(owed, c.shard)
		case c.what != "prepare":
			owed = slices.DeleteFunc(owed, func(shard int) bool { return shard == c.shard })
		}
	}
	return owed
}

// find returns copies of calls.
func (s *stage) find(which func(*call) bool) (found []call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if which(c) {
			found = append(found, *c)
		}
	}
	return found
}

// of returns the calls for a shard in a process, and tells them as in "prepare serve".
func (m *member) of(shard int) (calls []call, told string) {
	calls = m.find(func(c *call) bool { return c.who == m.name && c.shard == shard })
	for _, c := range calls {
		told += " " + c.what
	}
	return calls, strings.TrimSpace(told)
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}
