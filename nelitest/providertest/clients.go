package providertest

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

var discard = slog.New(slog.DiscardHandler)

// newName returns a name that was never used before.
func newName() string { return "contract-" + strings.ToLower(rand.Text()[:10]) }

// topic creates a topic with a new name.
func (b Bed) topic(t *testing.T, partitions int) string {
	t.Helper()
	name := newName()
	b.CreateTopic(t, name, partitions)
	return name
}

// tuned is much like what the library sets for every client.
var tuned = map[string]string{
	"socket.timeout.ms": "2000", "socket.connection.setup.timeout.ms": "3000", "reconnect.backoff.ms": "50",
	"reconnect.backoff.max.ms": "500", "retry.backoff.ms": "50", "retry.backoff.max.ms": "250",
	"topic.metadata.refresh.interval.ms": "2000",
}

// properties joins the bed's properties, those that the library sets for a client, and those of the test:
// names and values alternate.
func (b Bed) properties(fixed map[string]string, extra ...string) map[string]string {
	all := maps.Clone(tuned)
	maps.Copy(all, fixed)
	maps.Copy(all, b.Properties)
	for i := 0; i < len(extra); i += 2 {
		all[extra[i]] = extra[i+1]
	}
	return all
}

func (b Bed) producer(t *testing.T, extra ...string) kafka.Producer {
	t.Helper()
	p, err := b.Provider.Producer(b.properties(map[string]string{
		"acks": "all", "linger.ms": "0", "message.timeout.ms": "30000", "allow.auto.create.topics": "false",
	}, extra...), discard)
	require.NoError(t, err)
	t.Cleanup(func() { b.closed(t, p.Close()) })
	return p
}

// writer returns a producer whose records are in the log in the order of its appends, each once. Other producers promise
// neither: if a broker answers late, or refuses a record (as it may while a topic is new), the client sends the record
// again, possibly after later ones, and the log may have it twice.
func (b Bed) writer(t *testing.T) kafka.Producer {
	t.Helper()
	return b.producer(t, "enable.idempotence", "true")
}

func (b Bed) reader(t *testing.T) kafka.LogReader {
	t.Helper()
	r, err := b.Provider.LogReader(b.properties(map[string]string{
		"group.id": "not-joined", "enable.auto.commit": "false", "enable.auto.offset.store": "false",
		"allow.auto.create.topics": "false", "isolation.level": "read_uncommitted", "auto.offset.reset": "error",
		"fetch.error.backoff.ms": "50", "topic.metadata.propagation.max.ms": "5000",
	}), discard)
	require.NoError(t, err)
	t.Cleanup(func() { b.closed(t, r.Close()) })
	return r
}

func (b Bed) member(t *testing.T, group string, extra ...string) kafka.GroupConsumer {
	t.Helper()
	g, err := b.Provider.GroupConsumer(b.properties(map[string]string{
		"group.id": group, "enable.auto.commit": "false", "enable.auto.offset.store": "false",
		"allow.auto.create.topics": "false", "auto.offset.reset": "latest", "session.timeout.ms": "6000",
		"heartbeat.interval.ms": "500", "partition.assignment.strategy": "cooperative-sticky",
	}, extra...), discard)
	require.NoError(t, err)
	t.Cleanup(func() { b.closed(t, g.Close()) })
	return g
}

// closed requires that a client closed without an error, unless brokers are silent.
func (b Bed) closed(t *testing.T, err error) {
	t.Helper()
	if !b.silent {
		require.NoError(t, err)
	}
}

func (b Bed) admin(t *testing.T, over kafka.Producer) kafka.Admin {
	t.Helper()
	a, err := b.Provider.Admin(over)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

// readError polls until an error of the kind comes. No record may come before.
func readError(t *testing.T, r kafka.LogReader, kind error) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		_, ok, err := r.Poll(time.Second) // some clients report it only at the end of the timeout
		require.False(t, ok, "a record")
		if errors.Is(err, kind) {
			return
		}
		require.True(t, time.Now().Before(end), "no error %q, last %v", kind, err)
	}
}

// eventually waits until ok.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !ok(); {
		require.True(t, time.Now().Before(end), "not within %v: %s", within, what)
		wait(100 * time.Millisecond)
	}
}

func wait(d time.Duration) { <-time.After(d) }
