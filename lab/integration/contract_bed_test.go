package integration

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/proxy"
	"github.com/goneli/neli/nelitest/providertest"
)

// contractCluster is one broker, to which tests may do anything.
type contractCluster struct {
	*kafkatest.Cluster
	way   *proxy.Proxy // of the clients that have all rights
	admin hostileAdmin
	raw   *kgo.Client // for requests that the admin client cannot make
	dir   string
	named atomic.Int64
}

func newContractCluster(t *testing.T) *contractCluster {
	c := &contractCluster{dir: filepath.Join(t.TempDir(), "kafka")}
	c.Cluster = kafkatest.Run(t, kafkatest.Options{Secure: true, ProxiedListeners: 1, Dir: c.dir, BrokerProps: hostileBroker()})
	way, err := proxy.New(c.Cluster, 0)
	require.NoError(t, err)
	t.Cleanup(way.Close)
	c.way = way
	c.raw = newAdmin(t, c.Bootstrap()).Client
	c.admin = hostileAdmin{kadm.NewClient(c.raw)}
	return c
}

func (c *contractCluster) name(what string) string { return fmt.Sprint(what, "-", c.named.Add(1)) }

func (c *contractCluster) plain() map[string]string {
	return map[string]string{"bootstrap.servers": c.way.Bootstrap()}
}

// bed returns a bed with all abilities.
func (c *contractCluster) bed(t *testing.T, p kafka.Provider, props map[string]string) providertest.Bed {
	return providertest.Bed{
		Provider: p, Properties: props,
		CreateTopic: func(t *testing.T, topic string, partitions int) { c.admin.create(t, topic, partitions, 1, nil) },
		BadSettings: map[string]string{"retention.ms": "a week"},
		DeleteTopic: func(t *testing.T, topic string) {
			c.admin.remove(t, topic)
			hostileUntil(t, time.Minute, func() bool { return c.admin.partitions(t, topic) == 0 }, "it is gone")
		},
		DeleteHead: func(t *testing.T, topic string, partition int, start int64) {
			c.admin.behead(t, topic, partition, start)
		},
		Truncate: func(t *testing.T, topic string, partition int, end int64) {
			partitions := c.admin.partitions(t, topic)
			// No client sees the broker before it leads. See freeze for the reason.
			require.NoError(t, c.way.CutOff(proxy.Refuse))
			c.truncate(t, topic, partition, end)
			c.admin.served(t, topic, partitions)
			require.NoError(t, c.way.Restore())
		},
		Gap: func(t *testing.T, topic string, partition int) {
			before := c.admin.end(t, topic, partition)
			c.gap(t, topic, partition)
			hostileUntil(t, time.Minute, func() bool { return c.admin.end(t, topic, partition) > before }, "it has ended")
		},
		Freeze: c.freeze,
		Restrict: func(t *testing.T, topic, group string, rights providertest.Rights) providertest.Bed {
			return c.bed(t, p, c.restricted(t, topic, group, rights))
		},
		Stranger: func(t *testing.T) providertest.Bed {
			props := c.restricted(t, "none", "none", providertest.Rights{})
			props["sasl.password"] = "not-the-passw0rd"
			return c.bed(t, p, props)
		},
		Throttle: func(t *testing.T) providertest.Bed { return c.bed(t, p, c.throttled(t)) },
	}
}

// freeze holds back what clients and the broker send each other. The broker itself is not suspended: after a silence it
// would be fenced for a while, and a librdkafka client that hears of it may lose all brokers for ever (docs/clients.md).
func (c *contractCluster) freeze(t *testing.T) func() {
	t.Helper()
	require.NoError(t, c.way.Hold(proxy.Both))
	return func() { require.NoError(t, c.way.Restore()) }
}

// truncate cuts the records off the broker's file while it is down. Afterwards it leads with a new epoch, like a broker
// that was elected without these records.
func (c *contractCluster) truncate(t *testing.T, topic string, partition int, end int64) {
	t.Helper()
	b := c.Brokers()[0]
	b.Kill()
	logs, err := filepath.Glob(filepath.Join(c.dir, "*", "data", fmt.Sprint(topic, "-", partition), "*.log"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	cutLog(t, logs[0], end)
	require.NoError(t, b.Restart(t.Context()))
}

// cutLog removes a segment's batches that begin at or after an offset. A batch begins with its offset, in eight bytes,
// and the length of the rest, in four bytes.
func cutLog(t *testing.T, path string, end int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	for at := int64(0); ; {
		var head [12]byte
		_, err := f.ReadAt(head[:], at)
		require.False(t, errors.Is(err, io.EOF), "no batch begins at offset %d", end)
		require.NoError(t, err)
		if int64(binary.BigEndian.Uint64(head[:])) >= end {
			require.NoError(t, f.Truncate(at))
			return
		}
		at += 12 + int64(binary.BigEndian.Uint32(head[8:]))
	}
}

// gap ends a transaction that has written nothing. The marker of its end takes an offset.
func (c *contractCluster) gap(t *testing.T, topic string, partition int) {
	t.Helper()
	id := c.name("transaction")
	begin := kmsg.NewPtrInitProducerIDRequest()
	begin.TransactionalID, begin.TransactionTimeoutMillis = &id, 60_000
	var begun *kmsg.InitProducerIDResponse
	hostileUntil(t, time.Minute, func() bool { // the coordinator's topic has to be made first
		var err error
		begun, err = begin.RequestWith(t.Context(), c.raw)
		return err == nil && begun.ErrorCode == 0
	}, "a transaction begins")
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch = id, begun.ProducerID, begun.ProducerEpoch
	add.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: []int32{int32(partition)}}}
	added, err := add.RequestWith(t.Context(), c.raw)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(added.Topics[0].Partitions[0].ErrorCode))
	finish := kmsg.NewPtrEndTxnRequest()
	finish.TransactionalID, finish.ProducerID, finish.ProducerEpoch, finish.Commit = id, begun.ProducerID, begun.ProducerEpoch, true
	finished, err := finish.RequestWith(t.Context(), c.raw)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(finished.ErrorCode))
}

// restricted creates a user with these rights.
func (c *contractCluster) restricted(t *testing.T, topic, group string, rights providertest.Rights) map[string]string {
	t.Helper()
	user := c.name("user")
	require.NoError(t, c.AddUser(t.Context(), user, hostilePassword))
	var acls []kafkatest.ACL
	allow := func(ok bool, resource, name, operation string) {
		if ok {
			acls = append(acls, kafkatest.ACL{Principal: "User:" + user, ResourceType: resource, Name: name, Operation: operation})
		}
	}
	allow(true, "topic", topic, "describe")
	allow(rights.ReadTopic, "topic", topic, "read")
	allow(rights.WriteTopic, "topic", topic, "write")
	allow(rights.ReadGroup, "group", group, "read")
	require.NoError(t, c.Allow(t.Context(), acls...))
	return map[string]string{
		"bootstrap.servers": c.SecureBootstrap(), "security.protocol": "SASL_SSL", "ssl.ca.pem": c.CAPEM(),
		"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": user, "sasl.password": hostilePassword,
	}
}

// throttled creates a client.id that may produce ten kilobytes a second.
func (c *contractCluster) throttled(t *testing.T) map[string]string {
	t.Helper()
	id := c.name("throttled")
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.Entries = []kmsg.AlterClientQuotasRequestEntry{{
		Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "client-id", Name: &id}},
		Ops:    []kmsg.AlterClientQuotasRequestEntryOp{{Key: "producer_byte_rate", Value: 10_000}},
	}}
	resp, err := req.RequestWith(t.Context(), c.raw)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.Entries[0].ErrorCode))
	props := maps.Clone(c.plain())
	props["client.id"] = id
	return props
}

// Each provider fulfils the contract of the library on a real broker. nelitest passes the same tests, so results with
// nelitest apply to Kafka.
func TestProviderContract(t *testing.T) {
	t.Parallel()
	for name, provider := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newContractCluster(t)
			providertest.Run(t, func(t *testing.T, test func(*testing.T, providertest.Bed)) { test(t, c.bed(t, provider(), c.plain())) })
		})
	}
}
