//go:build unix

package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/franz/franzfence"
)

// A row that Kafka refuses, whoever writes it, must neither end the relay nor be tried for ever. The publisher names
// it, so that it is set aside.
func TestRefusedRowIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		topic string
		why   *kerr.Error
	}{
		"this principal may not write there":    {"t", kerr.TopicAuthorizationFailed},
		"nor there, where others have notes":    {"xg.outbox", kerr.TopicAuthorizationFailed},
		"its time is too far from the broker's": {"t", kerr.InvalidTimestamp},
	} {
		for rule, publish := range publishers {
			t.Run(name+", "+rule, func(t *testing.T) {
				broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t", "xg.outbox"), kfake.SeedTopics(noteSlot+1, progressTopic("g")))
				require.NoError(t, err)
				defer broker.Close()
				tellSettings(broker)
				broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: c.topic, Err: c.why, Count: -1})
				err = publish(t, []kgo.Opt{kgo.SeedBrokers(broker.ListenAddrs()...)}, []row{{ref: ref{id: 1}, topic: c.topic, key: "k", created: time.Now()}})
				var refused *refusal
				require.ErrorAs(t, err, &refused)
				require.Len(t, refused.rows, 1)
				require.ErrorIs(t, err, c.why)
			})
		}
	}
}

var publishers = map[string]func(*testing.T, []kgo.Opt, []row) error{"transactions": publishInTransaction, "header": publishByHeader}

// databaseTime is the time of the database at which the rows are read.
var databaseTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A process whose clock is wrong must not set rows aside. Therefore a note has the time of a row. A row may have a time
// in the future if its topic uses the broker's time. Then the note has the database's time.
func TestNoteHasTheTimeOfARow(t *testing.T) {
	for created, want := range map[time.Time]time.Time{databaseTime.Add(-time.Hour): databaseTime.Add(-time.Hour), databaseTime.Add(time.Hour): databaseTime} {
		for rule, publish := range publishers {
			t.Run(fmt.Sprint(rule, created), func(t *testing.T) {
				broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"), kfake.SeedTopics(noteSlot+1, progressTopic("g")))
				require.NoError(t, err)
				defer broker.Close()
				tellSettings(broker)
				broker.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
					broker.KeepControl()
					for _, topic := range req.(*kmsg.ProduceRequest).Topics {
						for _, p := range topic.Partitions {
							var batch kmsg.RecordBatch
							if err := batch.ReadFrom(p.Records); err != nil || p.Partition == noteSlot && batch.FirstTimestamp != want.UnixMilli() {
								return answered(req.(*kmsg.ProduceRequest), kerr.InvalidTimestamp), nil, true
							}
						}
					}
					return nil, nil, false
				})
				require.NoError(t, publish(t, []kgo.Opt{kgo.SeedBrokers(broker.ListenAddrs()...)}, []row{{ref: ref{id: 1}, topic: "t", key: "k", created: created}}))
			})
		}
	}
}

// tellSettings makes an in-memory broker answer for settings like a real one: that it verifies transactions, and that
// no topic has an empty name.
func tellSettings(broker *kfake.Cluster) {
	answerForSettings(broker, func(r *kmsg.DescribeConfigsResponseResource) {
		switch {
		case r.ResourceType == kmsg.ConfigResourceTypeBroker:
			r.Configs = []kmsg.DescribeConfigsResponseResourceConfig{{Name: "transaction.partition.verification.enable", Value: new("true")}}
		case r.ResourceName == "":
			r.ErrorCode = kerr.InvalidTopicException.Code
		}
	})
}

// answerForSettings makes an in-memory broker answer with what fill adds for a topic or broker.
func answerForSettings(broker *kfake.Cluster, fill func(*kmsg.DescribeConfigsResponseResource)) {
	broker.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, of := range req.(*kmsg.DescribeConfigsRequest).Resources {
			r := kmsg.NewDescribeConfigsResponseResource()
			r.ResourceType, r.ResourceName = of.ResourceType, of.ResourceName
			fill(&r)
			resp.Resources = append(resp.Resources, r)
		}
		return resp, nil, true
	})
}

// noteSlot is the slot of the rows. Only the topic of notes has a partition of this number.
const noteSlot = 3

func publishInTransaction(t *testing.T, opts []kgo.Opt, rows []row) error {
	p := &progress{topic: progressTopic("g")}
	kafkas, err := franzfence.New(t.Context(), slices.Concat(opts, []kgo.Opt{kgo.RecordPartitioner(byKey{except: p.topic})})...)
	require.NoError(t, err)
	attempts := 0
	return fence.Transactions(t.Context(), always{}, kafkas.Open(fence.TransactionalID("g", 0)), func(ctx context.Context, producer *franzfence.Producer) error {
		attempts++
		require.Equal(t, 1, attempts, "it is tried again")
		return (&transactional{&transactions{progress: p, group: "g"}, producer, noteSlot, nil}).publish(ctx, rows, nil, position{1, databaseTime.UnixMicro()})
	})
}

func publishByHeader(t *testing.T, opts []kgo.Opt, rows []row) error {
	h := newHeaders(nil, "g", 1, opts, slog.New(slog.DiscardHandler))
	client, err := kgo.NewClient(h.opts...)
	require.NoError(t, err)
	defer client.Close()
	return (&stamped{headers: h, client: client, now: term{slot: noteSlot}}).publish(t.Context(), rows, nil, position{1, databaseTime.UnixMicro()})
}
