//go:build unix

package main

import (
	"context"
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
		topic  string
		answer *kerr.Error
		want   error
	}{
		"this principal may not write there":    {"t", kerr.TopicAuthorizationFailed, kerr.TopicAuthorizationFailed},
		"its time is too far from the broker's": {"t", kerr.InvalidTimestamp, kerr.InvalidTimestamp},
	} {
		for rule, publish := range map[string]func(*testing.T, []kgo.Opt, []row) error{"transactions": publishInTransaction, "header": publishByHeader} {
			t.Run(name+", "+rule, func(t *testing.T) {
				broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t", progressTopic("g")))
				require.NoError(t, err)
				defer broker.Close()
				tellSettings(broker)
				if c.answer != nil {
					broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t", Err: c.answer, Count: -1})
				}
				err = publish(t, []kgo.Opt{kgo.SeedBrokers(broker.ListenAddrs()...)}, []row{{ref: ref{id: 1}, topic: c.topic, key: "k", created: time.Now()}})
				var refused *refusal
				require.ErrorAs(t, err, &refused)
				require.Len(t, refused.rows, 1)
				require.ErrorIs(t, err, c.want)
			})
		}
	}
}

// A process whose clock is wrong must not set rows aside. Therefore the records of a row's
// transaction have the row's time.
func TestNoteHasTheTimeOfARow(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t", progressTopic("g")))
	require.NoError(t, err)
	defer broker.Close()
	tellSettings(broker)
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	broker.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		for _, topic := range req.(*kmsg.ProduceRequest).Topics {
			for _, p := range topic.Partitions {
				var batch kmsg.RecordBatch
				if err := batch.ReadFrom(p.Records); err != nil || batch.FirstTimestamp != created.UnixMilli() {
					return answered(req.(*kmsg.ProduceRequest), kerr.InvalidTimestamp), nil, true
				}
			}
		}
		return nil, nil, false
	})
	require.NoError(t, publishInTransaction(t, []kgo.Opt{kgo.SeedBrokers(broker.ListenAddrs()...)}, []row{{ref: ref{id: 1}, topic: "t", key: "k", created: created}}))
}

// tellSettings makes an in-memory broker answer for settings like a real one: that it verifies transactions, and that
// no topic has an empty name.
func tellSettings(broker *kfake.Cluster) {
	broker.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		of := req.(*kmsg.DescribeConfigsRequest).Resources[0]
		r := kmsg.NewDescribeConfigsResponseResource()
		r.ResourceType, r.ResourceName = of.ResourceType, of.ResourceName
		switch {
		case of.ResourceType == kmsg.ConfigResourceTypeBroker:
			setting, value := kmsg.NewDescribeConfigsResponseResourceConfig(), "true"
			setting.Name, setting.Value = "transaction.partition.verification.enable", &value
			r.Configs = append(r.Configs, setting)
		case of.ResourceName == "":
			r.ErrorCode = kerr.InvalidTopicException.Code
		}
		resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		resp.Resources = append(resp.Resources, r)
		return resp, nil, true
	})
}

func publishInTransaction(t *testing.T, opts []kgo.Opt, rows []row) error {
	p := &progress{topic: progressTopic("g")}
	kafkas, err := franzfence.New(t.Context(), slices.Concat(opts, []kgo.Opt{kgo.RecordPartitioner(byKey{except: p.topic})})...)
	require.NoError(t, err)
	attempts := 0
	return fence.Transactions(t.Context(), always{}, kafkas.Open(fence.TransactionalID("g", 0)), func(ctx context.Context, producer *franzfence.Producer) error {
		attempts++
		require.Equal(t, 1, attempts, "it is tried again")
		return (&transactional{&transactions{progress: p, group: "g"}, producer, 0, nil}).publish(ctx, rows, nil, position{})
	})
}

func publishByHeader(t *testing.T, opts []kgo.Opt, rows []row) error {
	h := newHeaders(nil, "g", 1, opts, slog.New(slog.DiscardHandler))
	client, err := kgo.NewClient(h.opts...)
	require.NoError(t, err)
	defer client.Close()
	return (&stamped{headers: h, client: client}).publish(t.Context(), rows, nil, position{})
}
