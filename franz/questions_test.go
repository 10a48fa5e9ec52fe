//go:build cgo && !neli_nolibrdkafka

package franz_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/internal/confluent"
	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/kafka"
)

// confluentAdmin returns the default provider's admin client. Like all tests in this file, it is in
// this module because of the broker.
func confluentAdmin(t *testing.T, c *kfake.Cluster, log slog.Handler) kafka.Admin {
	t.Helper()
	provider, err := confluent.New()
	require.NoError(t, err)
	p, err := provider.Producer(map[string]string{"bootstrap.servers": c.ListenAddrs()[0]}, slog.New(log))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	a, err := provider.Admin(p)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

// The test asks where logs end, with very short time limits and while no leader is known.
// librdkafka's ListOffsets would free such requests twice and abort the process within a second or
// two (docs/clients.md).
func TestTimedOutOffsetQuestionsDoNotAbort(t *testing.T) {
	t.Parallel()
	a := confluentAdmin(t, cluster(t), slog.DiscardHandler)
	end := time.Now().Add(5 * time.Second)
	var asking sync.WaitGroup
	for i := range 8 {
		asking.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n%4+1)*time.Millisecond)
				_, err := a.Log(ctx, fmt.Sprint("missing ", i), 0)
				cancel()
				if err == nil {
					t.Error("a topic that does not exist has an end")
					return
				}
			}
		})
	}
	asking.Wait()
}

// A log ends after its last record, even if that is uncommitted: the reader reads such records.
func TestLogEndsAfterUncommittedRecords(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "log"))
	a := confluentAdmin(t, c, slog.DiscardHandler)
	writer, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.TransactionalID("open"), kgo.DefaultProduceTopic("log"))
	require.NoError(t, err)
	t.Cleanup(writer.Close)
	require.NoError(t, writer.BeginTransaction())
	require.NoError(t, writer.ProduceSync(t.Context(), kgo.StringRecord("uncommitted")).FirstErr())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	info, err := a.Log(ctx, "log", 0)
	require.NoError(t, err)
	require.Equal(t, kafka.OffsetRange{Start: 0, End: 1}, info.OffsetRange)
}

// If the context of a question ends, the connection must stay open: records are in flight on it.
func TestConnectionSurvivesAQuestionThatEnds(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "log"))
	text := &said.Text{}
	a := confluentAdmin(t, c, slog.NewTextHandler(text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := a.Log(ctx, "log", 0)
	require.NoError(t, err)

	var once sync.Once
	asked := make(chan struct{})
	c.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
		once.Do(func() {
			close(asked)
			<-time.After(3 * time.Second) // librdkafka looks once a second for what is late
		})
		return nil, nil, false
	})
	short, end := context.WithCancel(ctx)
	defer end()
	go func() { // the question must have been sent, which may take long on a busy machine
		select {
		case <-asked:
		case <-ctx.Done():
		}
		end()
	}()
	_, err = a.Log(short, "log", 0)
	require.ErrorIs(t, err, context.Canceled)
	_, err = a.Log(ctx, "log", 0)
	require.NoError(t, err)
	require.NotContains(t, text.String(), "tag=REQTMOUT")
}

// If the context of a member's question ends, the connection must stay, because the member fetches over it.
// On a busy machine librdkafka's own time for the question may end first, but not each time.
func TestConnectionSurvivesAMembersTimedOutQuery(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "log"))
	text := &said.Text{}
	provider, err := confluent.New()
	require.NoError(t, err)
	m, err := provider.GroupConsumer(map[string]string{"bootstrap.servers": c.ListenAddrs()[0], "group.id": "g"},
		slog.New(slog.NewTextHandler(text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, m.Reach(ctx, "log"))

	lost := func() int { return strings.Count(text.String(), "tag=REQTMOUT") }
	for range 3 {
		before := lost()
		answer := make(chan struct{})
		var once sync.Once
		c.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
			once.Do(func() { c.SleepControl(func() { <-answer }) })
			return nil, nil, false
		})
		short, end := context.WithTimeout(ctx, 50*time.Millisecond)
		require.Error(t, m.Reach(short, "log"))
		end()
		<-time.After(1300 * time.Millisecond) // librdkafka looks once a second for what is late
		close(answer)
		require.NoError(t, m.Reach(ctx, "log"))
		if lost() == before {
			return
		}
	}
	require.Fail(t, "each question cost the connection")
}
