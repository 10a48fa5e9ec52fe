package franzfence_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"sync/atomic"
	"syscall"
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

// always is a neli.Leadership that never ends.
type always struct{}

func (always) Valid() bool { return true }

// cluster is an in-memory broker that answers questions for its settings like a real one.
func cluster(topic string, settings map[string]string, code int16) *kfake.Cluster {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.SeedTopics(2, "two"))
	if err != nil {
		log.Fatal(err)
	}
	c.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, of := range req.(*kmsg.DescribeConfigsRequest).Resources {
			r := kmsg.NewDescribeConfigsResponseResource()
			r.ResourceType, r.ResourceName = of.ResourceType, of.ResourceName
			if code != kerr.TopicAuthorizationFailed.Code || of.ResourceType == kmsg.ConfigResourceTypeTopic {
				r.ErrorCode = code
			}
			for name, value := range settings {
				setting := kmsg.NewDescribeConfigsResponseResourceConfig()
				setting.Name, setting.Value = name, &value
				r.Configs = append(r.Configs, setting)
			}
			resp.Resources = append(resp.Resources, r)
		}
		return resp, nil, true
	})
	return c
}

var verifies = map[string]string{"transaction.partition.verification.enable": "true", "cleanup.policy": "delete"}

func ExampleNew() {
	broker := cluster("invoices", verifies, 0) // in production, name your brokers instead
	defer broker.Close()
	_, err := franzfence.New(context.Background(), kgo.SeedBrokers(broker.ListenAddrs()...)) // once, when the program starts
	fmt.Println(err)
	// Output: <nil>
}

func ExampleOpener_Open() {
	broker := cluster("invoices", verifies, 0)
	defer broker.Close()
	ctx := context.Background()
	kafkas, err := franzfence.New(ctx, kgo.SeedBrokers(broker.ListenAddrs()...))
	if err != nil {
		log.Fatal(err)
	}
	open := kafkas.Open(fence.TransactionalID("invoicing", 0))
	err = fence.Transactions(ctx, always{}, open, func(ctx context.Context, p *franzfence.Producer) error {
		return p.Commit(ctx, &kgo.Record{Topic: "invoices", Value: []byte("invoice 17")})
	})
	fmt.Println("committed:", err == nil)
	// Output: committed: true
}

func ExampleOpener_AppendOnly() {
	broker := cluster("invoices", map[string]string{"transaction.partition.verification.enable": "true", "cleanup.policy": "compact,delete"}, 0)
	defer broker.Close()
	ctx := context.Background()
	kafkas, err := franzfence.New(ctx, kgo.SeedBrokers(broker.ListenAddrs()...))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(kafkas.AppendOnly(ctx, "invoices"))
	// Output: fence: the topic is compacted: invoices has cleanup.policy=compact,delete
}

func TestNewRefusesBrokersThatDoNotVerify(t *testing.T) {
	for name, c := range map[string]struct {
		settings map[string]string
		code     int16
		want     error
	}{
		"before 3.6":      {map[string]string{"log.dirs": "x"}, 0, fence.ErrUnverified},
		"switched off":    {map[string]string{"transaction.partition.verification.enable": "false"}, 0, fence.ErrUnverified},
		"switched on":     {verifies, 0, nil},
		"may not be told": {nil, kerr.ClusterAuthorizationFailed.Code, nil},
		"fails":           {nil, kerr.InvalidRequest.Code, kerr.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			broker := cluster("t", c.settings, c.code)
			defer broker.Close()
			_, err := franzfence.New(t.Context(), kgo.SeedBrokers(broker.ListenAddrs()...))
			require.ErrorIs(t, err, c.want)
			if errors.Is(c.want, fence.ErrUnverified) {
				require.ErrorContains(t, err, "Apache Kafka 3.6 or newer")
			}
		})
	}
}

// A broker that is busy or restarting may not be reached at once.
func TestNewRetriesUnreachedBrokers(t *testing.T) {
	broker := cluster("t", verifies, 0)
	defer broker.Close()
	for _, failure := range []error{os.ErrDeadlineExceeded, syscall.ECONNREFUSED} {
		dials := 0
		_, err := franzfence.New(t.Context(), kgo.SeedBrokers(broker.ListenAddrs()...), kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
			if dials++; dials < 4 {
				return nil, &net.OpError{Op: "dial", Net: network, Err: failure}
			}
			return new(net.Dialer).DialContext(ctx, network, host)
		}))
		require.NoError(t, err)
		require.Greater(t, dials, 3)
	}
}

func TestNewSaysWhyNoBrokerAnswered(t *testing.T) {
	broker := cluster("t", verifies, 0)
	addrs := broker.ListenAddrs() // a closed cluster does not answer that
	broker.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // a busy machine must have tried once by then
	defer cancel()
	_, err := franzfence.New(ctx, kgo.SeedBrokers(addrs...))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "fence: asking for the brokers")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestNewDoesNotRetryAWrongHostName(t *testing.T) {
	_, err := franzfence.New(t.Context(), kgo.SeedBrokers("no.such.name.invalid:9092"), kgo.Dialer(func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Name: "no.such.name.invalid", IsNotFound: true}}
	}))
	require.ErrorContains(t, err, "no.such.name.invalid")
}

func TestNewRefusesOptions(t *testing.T) {
	_, err := franzfence.New(t.Context(), kgo.RequestTimeoutOverhead(time.Nanosecond))
	require.ErrorContains(t, err, "refuses its options")
}

func TestAppendOnlyNamesTheMissingRight(t *testing.T) {
	broker := cluster("t", verifies, kerr.TopicAuthorizationFailed.Code)
	defer broker.Close()
	kafkas, err := franzfence.New(t.Context(), kgo.SeedBrokers(broker.ListenAddrs()...))
	require.NoError(t, err)
	err = kafkas.AppendOnly(t.Context(), "t")
	require.ErrorIs(t, err, kerr.TopicAuthorizationFailed)
	require.ErrorContains(t, err, "DESCRIBE_CONFIGS")
}

func TestAppendOnlyAdmitsTopicsThatAreNotCompacted(t *testing.T) {
	broker := cluster("t", verifies, 0)
	defer broker.Close()
	kafkas, err := franzfence.New(t.Context(), kgo.SeedBrokers(broker.ListenAddrs()...))
	require.NoError(t, err)
	require.NoError(t, kafkas.AppendOnly(t.Context(), "t"))
}

// franz-go repeats an Init as long as the coordinator is busy, and each repetition may abort an
// open transaction of the rightful leader. The test repeats it without a pause, many times: the
// limit must not depend on which goroutine runs next.
func TestInitSendsNoMoreThanFifteenRequests(t *testing.T) {
	broker := cluster("t", verifies, 0)
	defer broker.Close()
	kafkas, err := franzfence.New(t.Context(), kgo.SeedBrokers(broker.ListenAddrs()...), kgo.ConcurrentTransactionsBackoff(time.Nanosecond))
	require.NoError(t, err)
	var sent atomic.Int32
	broker.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		sent.Add(1)
		resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
		resp.ErrorCode = kerr.ConcurrentTransactions.Code
		return resp, nil, true
	})
	for range 200 {
		sent.Store(0)
		client, err := kafkas.Open("neli/g/0")()
		require.NoError(t, err)
		require.ErrorContains(t, client.Init(t.Context()), "the coordinator was busy")
		client.Close()
		require.EqualValues(t, 15, sent.Load())
	}
}

func TestErrorsNameMissingRights(t *testing.T) {
	broker := cluster("t", verifies, 0)
	defer broker.Close()
	kafkas, err := franzfence.New(t.Context(), kgo.SeedBrokers(broker.ListenAddrs()...))
	require.NoError(t, err)
	for key, want := range map[kmsg.Key]struct {
		err  *kerr.Error
		text string
	}{
		kmsg.InitProducerID: {kerr.TransactionalIDAuthorizationFailed, "WRITE on TransactionalId neli/g/0"},
		kmsg.Produce:        {kerr.TopicAuthorizationFailed, "WRITE on the topic"},
	} {
		fault := broker.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: want.err, Count: -1})
		err := fence.Transactions(t.Context(), always{}, kafkas.Open("neli/g/0"), func(ctx context.Context, p *franzfence.Producer) error {
			return p.Commit(ctx, &kgo.Record{Topic: "t", Value: []byte("v")})
		})
		require.ErrorIs(t, err, fence.ErrPermanent)
		require.ErrorIs(t, err, want.err)
		require.ErrorContains(t, err, want.text)
		fault.Remove()
	}
}

// The client itself refuses a record without a topic, and each other producer would refuse it, too.
func TestRecordWithoutATopicIsAPermanentError(t *testing.T) {
	broker := cluster("t", verifies, 0)
	defer broker.Close()
	commit := func(opts ...kgo.Opt) error {
		kafkas, err := franzfence.New(t.Context(), append(opts, kgo.SeedBrokers(broker.ListenAddrs()...))...)
		require.NoError(t, err)
		attempts := 0
		return fence.Transactions(t.Context(), always{}, kafkas.Open("neli/g/0"), func(ctx context.Context, p *franzfence.Producer) error {
			if attempts++; attempts > 1 {
				return errors.New("it is tried again")
			}
			return p.Commit(ctx, &kgo.Record{Topic: "t", Value: []byte("a")}, &kgo.Record{Value: []byte("b")})
		})
	}
	err := commit()
	require.ErrorIs(t, err, fence.ErrPermanent)
	require.ErrorIs(t, err, kerr.InvalidTopicException)
	require.NoError(t, commit(kgo.DefaultProduceTopic("t")))
}

// A broker that was just started, or has just got a partition, may not know a topic yet. That must
// not end a term's work.
func TestTopicThatIsUnknownForAMomentIsRetried(t *testing.T) {
	for name, key := range map[string]kmsg.Key{"to metadata": kmsg.Metadata, "to produce": kmsg.Produce} {
		t.Run(name, func(t *testing.T) {
			broker := cluster("t", verifies, 0)
			defer broker.Close()
			kafkas, err := franzfence.New(t.Context(), kgo.SeedBrokers(broker.ListenAddrs()...), kgo.MetadataMinAge(50*time.Millisecond))
			require.NoError(t, err)
			// franz-go gives up at the fifth refusal.
			fault := broker.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Topic: "t", Err: kerr.UnknownTopicOrPartition, Count: 7})
			attempts := 0
			err = fence.Transactions(t.Context(), always{}, kafkas.Open("neli/g/0"), func(ctx context.Context, p *franzfence.Producer) error {
				attempts++
				return p.Commit(ctx, &kgo.Record{Topic: "t", Value: []byte("v")})
			})
			require.NoError(t, err)
			require.Equal(t, 7, fault.Hits())
			require.Equal(t, 2, attempts)
		})
	}
}
