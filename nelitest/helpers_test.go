package nelitest_test

import (
	"log/slog"
	"testing"

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
