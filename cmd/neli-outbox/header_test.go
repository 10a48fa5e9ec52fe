//go:build unix

package main

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/fence"
)

// A broker that cannot tell a topic's settings at the moment does not end the relay. Other errors,
// such as a missing right, are taken as the answer.
func TestUnavailableTopicSettingsAreAskedForAgain(t *testing.T) {
	var answer *kerr.Error
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	defer broker.Close()
	answerForSettings(broker, func(r *kmsg.DescribeConfigsResponseResource) { r.ErrorCode = answer.Code })
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...))
	require.NoError(t, err)
	defer client.Close()
	for code, want := range map[*kerr.Error]error{
		kerr.RequestTimedOut: fence.ErrRefused, kerr.UnknownServerError: fence.ErrRefused,
		kerr.TopicAuthorizationFailed: kerr.TopicAuthorizationFailed, kerr.InvalidTopicException: kerr.InvalidTopicException,
	} {
		answer = code
		_, err := mostBytes(t.Context(), client, "t")
		require.ErrorIs(t, err, want, code.Message)
		require.ErrorIs(t, err, code)
	}
}

// A row was set aside because it was too large for its topic. Once the topic takes larger records, the
// row is published.
func TestRaisedRecordLimitIsUsed(t *testing.T) {
	takes := "1000"
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	defer broker.Close()
	answerForSettings(broker, func(r *kmsg.DescribeConfigsResponseResource) {
		r.Configs = []kmsg.DescribeConfigsResponseResourceConfig{{Name: "max.message.bytes", Value: &takes}}
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...))
	require.NoError(t, err)
	defer client.Close()
	var topics topicLimits
	large := row{topic: "t", payload: make([]byte, 1000)}
	require.ErrorIs(t, topics.check(t.Context(), client, large), kerr.MessageTooLarge)
	takes = "2000"
	require.NoError(t, topics.check(t.Context(), client, large))
}

// By default, if franz-go cannot know whether the brokers have a record, it retries for ever. publish must not wait for
// that, since the term ends only when publish has returned.
func TestPublishEndsWithItsContext(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t", progressTopic("g")))
	require.NoError(t, err)
	defer broker.Close()
	ctx, cancel := context.WithCancel(t.Context())
	broker.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		time.AfterFunc(50*time.Millisecond, cancel)
		// Followers do not have the records yet: the client must ask again.
		return answered(req.(*kmsg.ProduceRequest), kerr.NotEnoughReplicasAfterAppend), nil, true
	})
	h := newHeaders(nil, "g", 1, []kgo.Opt{kgo.SeedBrokers(broker.ListenAddrs()...)}, slog.New(slog.DiscardHandler))
	h.topics.learn("t", 1<<20)
	client, err := kgo.NewClient(h.opts...)
	require.NoError(t, err)
	defer client.Close()
	ended := make(chan error, 1)
	go func() {
		ended <- (&stamped{headers: h, client: client}).publish(ctx, []row{{ref: ref{id: 1}, topic: "t", key: "a"}}, nil, position{})
	}()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, fence.ErrRefused)
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for the client, which waits for the brokers")
	}
}

// answered answers each partition with an error.
func answered(req *kmsg.ProduceRequest, err *kerr.Error) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, topic := range req.Topics {
		to := kmsg.NewProduceResponseTopic()
		to.Topic, to.TopicID = topic.Topic, topic.TopicID
		for _, p := range topic.Partitions {
			answer := kmsg.NewProduceResponseTopicPartition()
			answer.Partition, answer.ErrorCode = p.Partition, err.Code
			to.Partitions = append(to.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, to)
	}
	return resp
}

// A service may copy the headers of a record that another relay has published. Readers must find
// the headers of this relay.
func TestRowsCannotSetTheHeadersOfTheRelay(t *testing.T) {
	stamp := kgo.RecordHeader{Key: fence.Header, Value: fence.Stamp(57, 0, "g")}
	r := row{ref: ref{id: 7}, headers: []header{{fence.Header, "99 0 g"}, {idHeader, "4711"}, {"type", "paid"}}}
	own := []kgo.RecordHeader{{Key: "type", Value: []byte("paid")}, {Key: idHeader, Value: []byte("7")}, stamp}
	require.Equal(t, own, recordOf(r, stamp).Headers)
}
