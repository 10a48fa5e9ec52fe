package nelitest_test

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

var discard = slog.New(slog.DiscardHandler)

func newProducer(t *testing.T, p kafka.Provider, props map[string]string) kafka.Producer {
	t.Helper()
	pr, err := p.Producer(props, discard)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pr.Close()) })
	return pr
}

func newReader(t *testing.T, p kafka.Provider) kafka.LogReader {
	t.Helper()
	r, err := p.LogReader(nil, discard)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func newMember(t *testing.T, p kafka.Provider, props ...string) kafka.GroupConsumer {
	t.Helper()
	all := map[string]string{"group.id": "g", "session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
	for i := 0; i < len(props); i += 2 {
		all[props[i]] = props[i+1]
	}
	g, err := p.GroupConsumer(all, discard)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

func newAdmin(t *testing.T, p kafka.Provider, pr kafka.Producer) kafka.Admin {
	t.Helper()
	a, err := p.Admin(pr)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

// appendAll appends the values to one partition and waits for their reports.
func appendAll(t *testing.T, p kafka.Producer, topic string, partition int, values ...string) {
	t.Helper()
	reports := make(chan error, len(values))
	for _, v := range values {
		require.NoError(t, p.Append(topic, partition, []byte(v), func(err error) { reports <- err }))
	}
	for range values {
		require.NoError(t, <-reports)
	}
}

// read polls until n records have come.
func read(t *testing.T, r kafka.LogReader, n int) (rs []kafka.Record) {
	t.Helper()
	for range n {
		rec, ok, err := r.Poll(time.Minute)
		require.NoError(t, err)
		require.True(t, ok, "no record after %d", len(rs))
		rs = append(rs, rec)
	}
	return rs
}

func values(rs []kafka.Record) (vs []string) {
	for _, r := range rs {
		vs = append(vs, string(r.Value))
	}
	return vs
}

// tracked is a group member that is polled on a goroutine of its own.
type tracked struct {
	g    kafka.GroupConsumer
	mu   sync.Mutex
	have []int
	log  []string
	errs []error
	quit chan struct{}
	done chan struct{}
}

func track(t *testing.T, g kafka.GroupConsumer, topic string, read bool) *tracked {
	t.Helper()
	m := &tracked{g: g, quit: make(chan struct{}), done: make(chan struct{})}
	require.NoError(t, g.Join(topic, read))
	begin := time.Now()
	go func() {
		defer close(m.done)
		for {
			select {
			case <-m.quit:
				return
			default:
			}
			ev, err := g.Poll(100 * time.Millisecond)
			m.note(time.Since(begin), ev, err)
			if errors.Is(err, kafka.ErrClientFatal) {
				return
			}
		}
	}()
	t.Cleanup(m.stop)
	return m
}

func (m *tracked) note(at time.Duration, ev kafka.GroupEvent, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil:
		m.errs = append(m.errs, err)
	case ev.Kind == kafka.GroupAssigned:
		m.have = ev.Partitions
		m.log = append(m.log, fmt.Sprintf("%v assigned %v", at.Round(100*time.Millisecond), ev.Partitions))
	case ev.Kind == kafka.GroupLost:
		m.have = nil
		m.log = append(m.log, fmt.Sprintf("%v lost", at.Round(100*time.Millisecond)))
	}
}

func (m *tracked) stop() {
	select {
	case <-m.quit:
	default:
		close(m.quit)
	}
	<-m.done
}

func (m *tracked) assigned() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.have
}

func (m *tracked) history() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.log...)
}

func (m *tracked) failures() []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]error(nil), m.errs...)
}
