package peers

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/peers/internal/wire"
	"github.com/goneli/neli/peers/smalllog"
)

// client is a stream to a host in simulated time. When it has nothing more to send, it waits.
type client struct {
	ctx  context.Context
	says chan *wire.ToHost
	got  []*wire.FromHost
	at   []time.Time
}

func (c *client) Context() context.Context { return c.ctx }

func (c *client) Recv() (*wire.ToHost, error) {
	select {
	case m := <-c.says:
		return m, nil
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
}

func (c *client) Send(m *wire.FromHost) error {
	c.got, c.at = append(c.got, m), append(c.at, time.Now())
	return nil
}

func testHost() *host {
	agreed := agreement{group: "g", timeout: testTimeout, hosts: []Host{{"a", "127.0.0.1:1"}}}
	return newHost(agreed.hosts[0], agreed, &top{}, slog.New(slog.DiscardHandler))
}

func hello(h *host) *wire.ToHost {
	return &wire.ToHost{Kind: &wire.ToHost_Hello{Hello: &wire.Hello{Agreement: h.agreed.message("a")}}}
}

func TestSilentClientIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost()
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		err := h.follow(&client{ctx: ctx})
		assert.Equal(t, codes.DeadlineExceeded, status.Code(err))
		assert.Equal(t, helloWithin, time.Since(began))
		cancel()
		h.work.Wait()
	})
}

// streaming lets a client follow a host while do runs, and returns the client when the stream has ended.
func streaming(t *testing.T, h *host, do func(c *client)) *client {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &client{ctx: ctx, says: make(chan *wire.ToHost, 1)}
	c.says <- hello(h)
	ended := make(chan error)
	go func() { ended <- h.follow(c) }()
	do(c)
	synctest.Wait()
	cancel()
	require.Error(t, <-ended)
	h.work.Wait()
	return c
}

// TestSignOfLifeIsSentWhenNothingElseIs lets records come every T/8 for a while, and then none.
func TestSignOfLifeIsSentWhenNothingElseIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost()
		id := h.store.ID()
		c := streaming(t, h, func(*client) {
			for range 8 {
				<-time.After(testTimeout / 8)
				require.NoError(t, h.append(&wire.Append{Seq: 1, Incarnation: id[:]}, &subscriber{own: map[int64]uint64{}}))
			}
			<-time.After(testTimeout + time.Millisecond)
		})
		var kinds string
		for i, m := range c.got {
			switch {
			case m.GetBegin() != nil:
				kinds += "b"
			case m.GetRecord() != nil:
				kinds += "r"
			case m.GetAlive() != nil:
				kinds += "a"
				assert.Equal(t, testTimeout/4, c.at[i].Sub(c.at[i-1]))
				assert.EqualValues(t, 8, m.GetAlive().GetEnd())
			}
		}
		assert.Equal(t, "brrrrrrrraaaa", kinds)
	})
}

// TestRefusalsDoNotDelayTheSignOfLife refuses a record every T/8.
func TestRefusalsDoNotDelayTheSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := streaming(t, testHost(), func(c *client) {
			for range 8 {
				c.says <- &wire.ToHost{Kind: &wire.ToHost_Append{Append: &wire.Append{Seq: 1}}}
				<-time.After(testTimeout / 8)
			}
		})
		alive, refused := 0, 0
		for _, m := range c.got {
			if m.GetAlive() != nil {
				alive++
			}
			if m.GetRefusal() != nil {
				refused++
			}
		}
		assert.Equal(t, 8, refused)
		assert.GreaterOrEqual(t, alive, 3, "signs of life in T")
	})
}

// lyingHost sends given messages, whatever it is asked.
type lyingHost struct{ says []*wire.FromHost }

func (l *lyingHost) Send(*wire.ToHost) error { return nil }

func (l *lyingHost) Recv() (*wire.FromHost, error) {
	if len(l.says) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	m := l.says[0]
	l.says = l.says[1:]
	return m, nil
}

func TestMemberLeavesALyingHost(t *testing.T) {
	id := smalllog.ID{1}
	begin := func(b *wire.Begin) *wire.FromHost { return &wire.FromHost{Kind: &wire.FromHost_Begin{Begin: b}} }
	record := func(o int64) *wire.FromHost {
		return &wire.FromHost{Kind: &wire.FromHost_Record{Record: &wire.Record{Offset: o, Seq: 1 << 60}}}
	}
	good := begin(&wire.Begin{Incarnation: id[:], Offset: 3, End: 4, First: 3})
	for name, says := range map[string][]*wire.FromHost{
		"no begin":                 {record(0)},
		"nothing":                  {{}},
		"a short id":               {begin(&wire.Begin{Incarnation: id[:5]})},
		"an offset below 0":        {begin(&wire.Begin{Incarnation: id[:], Offset: -1})},
		"an end before the offset": {begin(&wire.Begin{Incarnation: id[:], Offset: 2, End: 1})},
		"a ballot below 0":         {begin(&wire.Begin{Incarnation: id[:], Top: -1})},
		"an impossible ballot":     {begin(&wire.Begin{Incarnation: id[:], Top: maxBallot + 1})},
		"a gap":                    {good, record(3), record(5)},
		"a record twice":           {good, record(3), record(3)},
		"begin twice":              {good, good},
		"an empty message":         {good, {}},
	} {
		t.Run(name, func(t *testing.T) {
			var entries []kafka.LogEntry
			l := &link{to: Host{"a", "127.0.0.1:1"}, settings: &settings{agreed: agreement{timeout: testTimeout}}, next: -1,
				logger: slog.New(slog.DiscardHandler),
				open:   func(context.Context) (clientStream, func(), error) { return &lyingHost{says}, func() {}, nil },
				emit: func(_ context.Context, e kafka.LogEntry) bool {
					entries = append(entries, e)
					return true
				}}
			require.ErrorIs(t, l.session(t.Context()), errProtocol)
			for i, e := range entries {
				assert.Equal(t, i == 0, e.Kind == kafka.LogReset)
				assert.EqualValues(t, 3+max(0, i-1), e.Offset, "passes on a record out of order")
			}
		})
	}
}
