package franz_test

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/kafka"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait.
const patience = 2 * time.Minute

// cluster starts a Kafka broker in this process.
func cluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(100 * time.Millisecond)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// bed makes clients of a cluster.
type bed struct {
	t     *testing.T
	c     *kfake.Cluster
	props map[string]string
	opts  []kgo.Opt
	log   *said.Text
}

func newBed(t *testing.T, c *kfake.Cluster, extra ...string) *bed {
	b := &bed{t: t, c: c, log: &said.Text{}, props: map[string]string{
		"bootstrap.servers": c.ListenAddrs()[0], "retry.backoff.ms": "20", "retry.backoff.max.ms": "100",
		"topic.metadata.refresh.interval.ms": "500", "topic.metadata.refresh.fast.interval.ms": "20",
		"socket.timeout.ms": "2000", "topic.metadata.propagation.max.ms": "1000",
	}}
	for i := 0; i < len(extra); i += 2 {
		b.props[extra[i]] = extra[i+1]
	}
	return b
}

func (b *bed) with(extra map[string]string) map[string]string {
	all := maps.Clone(b.props)
	maps.Copy(all, extra)
	return all
}

func (b *bed) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (b *bed) producer() kafka.Producer {
	b.t.Helper()
	p, err := franz.Provider(b.opts...).Producer(b.with(map[string]string{"acks": "all", "linger.ms": "0"}), b.logger())
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, p.Close()) })
	return p
}

func (b *bed) reader() kafka.LogReader {
	b.t.Helper()
	r, err := franz.Provider(b.opts...).LogReader(b.with(map[string]string{"auto.offset.reset": "error", "fetch.wait.max.ms": "200"}), b.logger())
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, r.Close()) })
	return r
}

func (b *bed) member(extra ...string) kafka.GroupConsumer {
	b.t.Helper()
	props := b.with(map[string]string{"group.id": "g", "auto.offset.reset": "latest", "session.timeout.ms": "6000", "heartbeat.interval.ms": "100"})
	for i := 0; i < len(extra); i += 2 {
		props[extra[i]] = extra[i+1]
	}
	g, err := franz.Provider(b.opts...).GroupConsumer(props, b.logger())
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, g.Close()) })
	return g
}

func (b *bed) admin(p kafka.Producer) kafka.Admin {
	b.t.Helper()
	a, err := franz.Provider().Admin(p)
	require.NoError(b.t, err)
	b.t.Cleanup(a.Close)
	return a
}

// outcomes collects reports.
type outcomes struct {
	ch chan error
}

// endless are properties that let a client wait for an answer, and keep a record, for longer than a test takes.
var endless = []string{"socket.timeout.ms", "300000", "message.timeout.ms", "300000"}

func newOutcomes() *outcomes { return &outcomes{make(chan error, 100)} }

func (o *outcomes) report(err error) { o.ch <- err }

// next returns the next report.
func (o *outcomes) next(t *testing.T) error {
	t.Helper()
	select {
	case err := <-o.ch:
		return err
	case <-time.After(patience):
		require.Fail(t, "no report")
		return nil
	}
}

func (b *bed) append(p kafka.Producer, topic string, values ...string) {
	b.t.Helper()
	o := newOutcomes()
	for _, v := range values {
		require.NoError(b.t, p.Append(topic, 0, []byte(v), o.report))
	}
	for range values {
		require.NoError(b.t, o.next(b.t))
	}
}

// read polls until it has n records.
func read(t *testing.T, r kafka.LogReader, n int) (values []string) {
	t.Helper()
	for end := time.Now().Add(patience); len(values) < n; {
		rec, ok, err := r.Poll(100 * time.Millisecond)
		require.NoError(t, err)
		if ok {
			values = append(values, string(rec.Value))
		}
		require.True(t, time.Now().Before(end), "only %q", values)
	}
	return values
}

// pollError polls until it gets an error of one of the kinds. No record may come before.
func pollError(t *testing.T, r kafka.LogReader, kinds ...error) error {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		_, ok, err := r.Poll(100 * time.Millisecond)
		require.False(t, ok, "a record")
		if slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
			return err
		}
		require.True(t, time.Now().Before(end), "no error %q, last: %v", kinds, err)
	}
}
