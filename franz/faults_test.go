package franz_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/kafka"
)

// franz-go reports lost records only after it has moved its position back. Records read from there
// must not be returned as if they followed.
func TestTruncatedLogStopsReading(t *testing.T) {
	c := cluster(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "log"))
	b := newBed(t, c)
	p, r := b.producer(), b.reader()
	b.append(p, "log", "0", "1", "2", "3", "4")
	require.NoError(t, r.Assign("log", []int64{0}))
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, read(t, r, 5))

	var asked atomic.Bool
	c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = "log"
		part := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		part.LeaderEpoch, part.EndOffset = 0, 2
		topic.Partitions = append(topic.Partitions, part)
		resp.Topics = append(resp.Topics, topic)
		asked.Store(true)
		return resp, nil, true
	})
	require.NoError(t, c.MoveTopicPartition("log", 0, 1-c.LeaderFor("log", 0)))
	pollError(t, r, kafka.ErrTruncated)
	require.True(t, asked.Load())
	b.append(p, "log", "5")
	for range 5 {
		_, ok, err := r.Poll(100 * time.Millisecond)
		require.False(t, ok, "a record after the truncation")
		require.ErrorIs(t, err, kafka.ErrTruncated)
	}
	require.NoError(t, r.Assign("log", []int64{4}))
	require.Equal(t, []string{"4", "5"}, read(t, r, 2))
}

// Every connection begins with ApiVersions. Brokers up to Kafka 4.3 refuse version 5, and the
// client would ask again: a round trip more.
func TestConnectionsSendOneApiVersionsRequest(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "log"))
	asked := make(chan int16, 100)
	c.ControlKey(int16(kmsg.ApiVersions), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked <- r.GetVersion()
		return nil, nil, false
	})
	b := newBed(t, c)
	b.append(b.producer(), "log", "a record")
	require.NotEmpty(t, asked)
	for range len(asked) {
		require.LessOrEqual(t, <-asked, int16(4))
	}
}

// A record for a topic must not arrive in another topic with the same name.
func TestQueuedRecordStaysOutOfRecreatedTopic(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "log"))
	b := newBed(t, c, "message.timeout.ms", "5000")
	p := b.producer()
	a := b.admin(p)
	b.append(p, "log", "known")
	before, err := a.Topic(t.Context(), "log")
	require.NoError(t, err)

	notYet := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "log", Err: kerr.NotEnoughReplicas, Count: -1})
	o := newOutcomes()
	require.NoError(t, p.Append("log", 0, []byte("queued"), o.report))
	require.Eventually(t, func() bool { return notYet.Hits() > 2 }, patience, time.Millisecond)
	require.NoError(t, c.DeleteTopic("log"))
	require.NoError(t, c.CreateTopic("log", 1, nil))
	notYet.Remove()
	require.Error(t, o.next(t))
	for range 3 { // nor does a later one
		require.NoError(t, p.Append("log", 0, []byte("later"), o.report))
		require.ErrorIs(t, o.next(t), kafka.ErrUnknownTopic)
	}
	after, err := a.Topic(t.Context(), "log")
	require.NoError(t, err)
	require.NotEqual(t, before.ID, after.ID)
	extents, err := a.Offsets(t.Context(), "log", 1)
	require.NoError(t, err)
	require.Equal(t, []kafka.OffsetRange{{}}, extents, "the new topic has a record")
}

// A reader does not read on in another topic with the same name, and reports it.
func TestReaderStaysOutOfRecreatedTopic(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "log"))
	b := newBed(t, c)
	r := b.reader()
	b.append(b.producer(), "log", "0", "1")
	require.NoError(t, r.Assign("log", []int64{0}))
	read(t, r, 2)
	require.NoError(t, c.DeleteTopic("log"))
	require.NoError(t, c.CreateTopic("log", 1, nil))
	b.append(b.producer(), "log", "x", "y", "z")
	pollError(t, r, kafka.ErrUnknownTopic)
}

// A topic that was read before is not new. If it becomes unknown, that is reported at once, even to
// a reader that has begun again.
func TestDeletionOfATopicThatWasReadIsReportedAtOnce(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("assigned again ", again), func(t *testing.T) {
			c := cluster(t, kfake.SeedTopics(1, "log"))
			b := newBed(t, c, "topic.metadata.propagation.max.ms", "3600000")
			r := b.reader()
			b.append(b.producer(), "log", "0", "1")
			require.NoError(t, r.Assign("log", []int64{0}))
			require.Equal(t, []string{"0", "1"}, read(t, r, 2))
			if again {
				require.NoError(t, r.Assign("log", []int64{2}))
			}
			require.NoError(t, c.DeleteTopic("log"))
			pollError(t, r, kafka.ErrUnknownTopic)
		})
	}
}

// A batch that unpacks to more than the client takes, or that is damaged, is an error that says where reading can go on.
func TestUnreadableBatches(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "log"))
	b := newBed(t, c, "receive.message.max.bytes", "1000000", "fetch.max.bytes", "100000")
	b.append(b.producer(), "log", "0")
	for _, codec := range []kgo.CompressionCodec{kgo.ZstdCompression(), kgo.GzipCompression(), kgo.Lz4Compression(), kgo.SnappyCompression()} {
		inflate(t, c, codec)
	}
	b.append(b.producer(), "log", "5")
	r := b.reader()
	require.NoError(t, r.Assign("log", []int64{0}))
	require.Equal(t, []string{"0"}, read(t, r, 1))
	for next := int64(2); next <= 5; next++ {
		err := pollError(t, r, kafka.ErrUnreadable)
		at, ok := errors.AsType[*kafka.UnreadableError](err)
		require.True(t, ok)
		require.Equal(t, 0, at.Partition)
		require.Equal(t, next, at.Next)
		_, ok, err = r.Poll(50 * time.Millisecond)
		require.NoError(t, err, "it is said once")
		require.False(t, ok)
		require.NoError(t, r.Assign("log", []int64{next}))
	}
	require.Equal(t, []string{"5"}, read(t, r, 1))
}

// inflate appends a batch that unpacks to 10 MiB.
func inflate(t *testing.T, c *kfake.Cluster, codec kgo.CompressionCodec) {
	t.Helper()
	p, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(20<<20))
	require.NoError(t, err)
	defer p.Close()
	require.NoError(t, p.ProduceSync(t.Context(), &kgo.Record{Topic: "log", Value: make([]byte, 10<<20)}).FirstErr())
}

// A member of a group reports an unreadable batch once, and reads on after it by itself.
func TestGroupReadsOnAfterAnUnreadableBatch(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "log"))
	b := newBed(t, c, "receive.message.max.bytes", "1000000", "fetch.max.bytes", "100000")
	g := b.member()
	require.NoError(t, g.Join("log", true))
	next := func() (kafka.GroupEvent, error) {
		for end := time.Now().Add(patience); time.Now().Before(end); {
			if ev, err := g.Poll(100 * time.Millisecond); ev.Kind != kafka.GroupIdle || err != nil {
				return ev, err
			}
		}
		return kafka.GroupEvent{}, nil
	}
	p := b.producer()
	for kind := kafka.GroupIdle; kind != kafka.GroupRecord; { // it reads from the end, which it has yet to ask for
		b.append(p, "log", "begin")
		ev, err := g.Poll(100 * time.Millisecond)
		require.NoError(t, err)
		kind = ev.Kind
	}
	for i := range 3 {
		b.append(p, "log", fmt.Sprint(i))
		ev, err := next()
		for ; err == nil && string(ev.Record.Value) == "begin"; ev, err = next() {
		}
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), string(ev.Record.Value))
		inflate(t, c, kgo.ZstdCompression())
		_, err = next()
		require.ErrorIs(t, err, kafka.ErrUnreadable)
	}
}

// A broker that closes connections at once, or does not answer on them, is reported as ErrUnserved. The client itself
// suspects TLS.
func TestBrokerThatServesNoConnection(t *testing.T) {
	for name, closes := range map[string]bool{"closes": true, "waits": false} {
		t.Run(name, func(t *testing.T) {
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					if closes {
						_ = conn.Close()
						continue
					}
					defer func() { _ = conn.Close() }()
				}
			}()
			props := map[string]string{"bootstrap.servers": l.Addr().String(), "socket.connection.setup.timeout.ms": "500", "socket.timeout.ms": "500"}
			p, err := franz.Provider().Producer(props, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			defer p.Close()
			a, err := franz.Provider().Admin(p)
			require.NoError(t, err)
			t.Cleanup(a.Close)
			require.Eventually(t, func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				_, err = a.Topic(ctx, "log")
				return errors.Is(err, kafka.ErrUnserved)
			}, patience, time.Millisecond)
			require.Equal(t, 1, strings.Count(err.Error(), "does not serve this client"), err.Error())
		})
	}
}

// A topic that some brokers do not know yet does not count as unknown.
func TestTopicUnknownToSomeBrokersIsRead(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "log"))
	b := newBed(t, c)
	b.append(b.producer(), "log", "0")
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "log", Err: kerr.UnknownTopicOrPartition, Count: 10})
	r := b.reader()
	require.NoError(t, r.Assign("log", []int64{0}))
	require.Equal(t, []string{"0"}, read(t, r, 1))
}

func TestThrottled(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "log"))
	b := newBed(t, c)
	p := b.producer()
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		asked := req.(*kmsg.ProduceRequest)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		resp.ThrottleMillis = 250
		for _, at := range asked.Topics {
			topic := kmsg.NewProduceResponseTopic()
			topic.Topic, topic.TopicID = at.Topic, at.TopicID
			for _, ap := range at.Partitions {
				part := kmsg.NewProduceResponseTopicPartition()
				part.Partition = ap.Partition
				topic.Partitions = append(topic.Partitions, part)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	require.Zero(t, p.Throttled())
	began := time.Now() // before the answer from which the client counts
	b.append(p, "log", "throttled")
	require.Equal(t, 250*time.Millisecond, p.Throttled())
	b.append(p, "log", "waits")
	require.GreaterOrEqual(t, time.Since(began), 250*time.Millisecond, "does not wait")
	require.NoError(t, p.Close())
	require.Equal(t, 250*time.Millisecond, p.Throttled())
}

// assigned polls until the member is assigned something.
func assigned(t *testing.T, g kafka.GroupConsumer) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		ev, err := g.Poll(100 * time.Millisecond)
		require.NoError(t, err)
		if ev.Kind == kafka.GroupAssigned && len(ev.Partitions) > 0 {
			return
		}
		require.True(t, time.Now().Before(end), "nothing was assigned")
	}
}

// If its first metadata lack a topic, franz-go asks for the ends of the log and moves a position
// outside it to the nearest end. A reader must not begin there silently.
func TestPositionOutsideALateTopicIsAnError(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		at   int64
		kind error // of the error; but if the broker is asked for the position after all, it is ErrOutOfRange
	}{
		"before the start": {1, kafka.ErrOutOfRange},
		"behind the end":   {1000, kafka.ErrTruncated}, // which the appends do not reach
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, kfake.SeedTopics(1, "log"))
			b := newBed(t, c)
			p := b.producer()
			b.append(p, "log", "0", "1", "2", "3", "4")
			require.NoError(t, c.DeleteRecords("log", 0, 3))
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "log", Err: kerr.UnknownTopicOrPartition, Count: 5})
			r := b.reader()
			require.NoError(t, r.Assign("log", []int64{tc.at}))
			stop := make(chan struct{})
			var appends sync.WaitGroup
			appends.Go(func() { // a wrong position shows with the next record
				for {
					select {
					case <-stop:
						return
					case <-time.After(300 * time.Millisecond):
						_ = p.Append("log", 0, []byte("5"), func(error) {})
					}
				}
			})
			pollError(t, r, tc.kind, kafka.ErrOutOfRange)
			close(stop)
			appends.Wait()
			require.NoError(t, r.Assign("log", []int64{3}))
			require.Equal(t, []string{"3", "4", "5"}, read(t, r, 3))
		})
	}
}
