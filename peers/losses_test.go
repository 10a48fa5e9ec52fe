package peers

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/peers/internal/wire"
	"github.com/goneli/neli/peers/smalllog"
)

// wakingStream is a stream to a log of an incarnation in which every offset has a record. It
// looks like a stream to a process that was suspended while it waited: the host's messages are
// there, and the watchdog's time is up, too.
type wakingStream struct {
	ctx   context.Context
	id    smalllog.ID
	wakes int // the message, counted from 1, with which the suspension ends; the watchdog fires at the same time
	next  int64
	told  int
}

func (s *wakingStream) Send(m *wire.ToHost) error {
	if h := m.GetHello(); h != nil && string(h.GetIncarnation()) == string(s.id[:]) {
		s.next = h.GetFrom()
	}
	return nil
}

func (s *wakingStream) Recv() (*wire.FromHost, error) {
	s.told++
	switch {
	case s.told > s.wakes:
		return nil, io.ErrUnexpectedEOF
	case s.told == s.wakes:
		<-s.ctx.Done()
	}
	if s.told == 1 {
		return &wire.FromHost{Kind: &wire.FromHost_Begin{Begin: &wire.Begin{Incarnation: s.id[:], Offset: s.next, End: s.next + 1}}}, nil
	}
	r := &wire.Record{Offset: s.next, Value: fmt.Append(nil, s.next)}
	s.next++
	return &wire.FromHost{Kind: &wire.FromHost_Record{Record: r}}, nil
}

// deafStream is a stream to a host that is heard but does not get what is sent, as in a one-way cut.
type deafStream struct {
	ctx   context.Context
	id    smalllog.ID
	every time.Duration
	began bool
}

func (s *deafStream) Send(*wire.ToHost) error { return nil }

func (s *deafStream) Recv() (*wire.FromHost, error) {
	if !s.began {
		s.began = true
		return &wire.FromHost{Kind: &wire.FromHost_Begin{Begin: &wire.Begin{Incarnation: s.id[:]}}}, nil
	}
	select {
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	case <-time.After(s.every):
		return &wire.FromHost{Kind: &wire.FromHost_Alive{Alive: &wire.Alive{}}}, nil
	}
}

// A host that is alive but takes no records must be left, since another connection may do better.
func TestMemberLeavesASilentHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id, none := smalllog.ID{1}, 0
		l, v := wokenLink(&id, &none)
		l.open = func(ctx context.Context) (clientStream, func(), error) {
			return &deafStream{ctx: ctx, id: id, every: testTimeout / 4}, func() {}, nil
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*testTimeout)
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- l.session(ctx) }()
		require.Equal(t, kafka.LogReset, (<-v.entries).Kind)
		began, reported := time.Now(), make(chan error, 1)
		require.NoError(t, l.append(id.String(), []byte("x"), 0, func(err error) { reported <- err }))
		require.ErrorIs(t, <-ended, errUnanswered, "a host that answers nothing is kept")
		require.LessOrEqual(t, time.Since(began), testTimeout*3/2)
		require.Error(t, <-reported)
	})
}

// wokenLink is a link of a logSet. Each of its sessions ends with a suspension.
func wokenLink(id *smalllog.ID, wakes *int) (*link, *logSet) {
	v := &logSet{size: 1, entries: make(chan kafka.LogEntry, maxEntries), begun: make([]bool, 1), refused: make([]error, 1)}
	return &link{to: Host{"a", "127.0.0.1:1"}, settings: &settings{agreed: agreement{timeout: testTimeout}}, next: -1,
		logger: slog.New(slog.DiscardHandler), emit: v.emit,
		open: func(ctx context.Context) (clientStream, func(), error) {
			return &wakingStream{ctx: ctx, id: *id, wakes: *wakes}, func() {}, nil
		}}, v
}

// TestWokenProcessLosesNoRecord lets a process wake again and again when it has just
// received a record and its watchdog is due.
func TestWokenProcessLosesNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id, wakes := smalllog.ID{1}, 2
		l, v := wokenLink(&id, &wakes)
		next, lost, records := int64(-1), 0, 0
		for range 200 {
			require.ErrorIs(t, l.session(t.Context()), errSilent)
			for len(v.entries) > 0 {
				switch e := <-v.entries; e.Kind {
				case kafka.LogReset:
					next = e.Offset
				case kafka.LogRecord:
					if lost += int(e.Offset - next); e.Offset < next {
						require.Fail(t, "a record twice", "%d after %d", e.Offset, next-1)
					}
					next = e.Offset + 1
					records++
				}
			}
		}
		require.Positive(t, records)
		assert.Zero(t, lost, "records were lost without a reset, besides %d that were read", records)
	})
}

// TestWokenProcessLosesNoReset lets a process wake when it has just learnt of another incarnation.
func TestWokenProcessLosesNoReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var id smalllog.ID
		wakes, lost := 1, 0
		l, v := wokenLink(&id, &wakes)
		for n := range 200 {
			id[0] = byte(1 + n)
			wakes = 1
			require.ErrorIs(t, l.session(t.Context()), errSilent)
			wakes = 3
			require.ErrorIs(t, l.session(t.Context()), errSilent)
			if e := <-v.entries; e.Kind != kafka.LogReset || e.ID != id.String() {
				lost++
			}
			for len(v.entries) > 0 {
				<-v.entries
			}
		}
		assert.Zero(t, lost, "resets were lost")
	})
}
