package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func seeds(bootstrap string) []string { return strings.Split(bootstrap, ",") }

// A Reader reads what was committed to Topic. It is for one goroutine.
type Reader struct {
	client *kgo.Client
	next   map[int]int64 // by role: the offset after the last record or marker that was read
	last   map[int]record
	keep   func(Entry)
}

// NewReader returns a Reader that connects by dial, or by this process's own network if dial is nil.
func NewReader(bootstrap string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (*Reader, error) {
	// Markers are read, too. If the last transaction was aborted, only its marker shows how far the reader has got.
	opts := []kgo.Opt{kgo.SeedBrokers(seeds(bootstrap)...), kgo.ConsumeTopics(Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords()}
	if dial != nil {
		opts = append(opts, kgo.Dialer(dial))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return &Reader{client: client, next: map[int]int64{}, last: map[int]record{}, keep: func(Entry) {}}, nil
}

// Read returns the value that was committed last when it was called, or a later one. It asks for the end of the log, including
// open transactions, and waits until these have ended. It fails if the broker that answers has been replaced as the leader.
func (r *Reader) Read(ctx context.Context, role int) (token, value int64, err error) {
	end, err := r.end(ctx, role)
	if err != nil {
		return 0, 0, fmt.Errorf("store: asking for the end: %w", err)
	}
	for r.next[role] < end {
		fetches := r.client.PollFetches(ctx)
		var bad error
		fetches.EachRecord(func(k *kgo.Record) {
			if err := r.take(k); err != nil {
				bad = err
			}
		})
		if err := cmp.Or(bad, ctx.Err()); err != nil {
			return 0, 0, err
		}
	}
	last, some := r.last[role]
	if !some {
		return -1, 0, nil
	}
	return last.Token, last.Value, nil
}

func (r *Reader) take(k *kgo.Record) error {
	role := int(k.Partition)
	r.next[role] = k.Offset + 1
	if k.Attrs.IsControl() {
		return nil
	}
	var v record
	if err := json.Unmarshal(k.Value, &v); err != nil {
		return fmt.Errorf("store: record %d of role %d: %w", k.Offset, role, err)
	}
	before, some := r.last[role]
	r.keep(Entry{Serial: k.Offset, Role: role, Token: v.Token, Value: v.Value, Member: v.Member, Accepted: true, Stale: some && v.Token < before.Token})
	r.last[role] = v
	return nil
}

// end returns the high watermark of a role's partition.
func (r *Reader) end(ctx context.Context, role int) (int64, error) {
	epoch, err := r.epoch(ctx, role)
	if err != nil {
		return 0, err
	}
	partition := kmsg.NewListOffsetsRequestTopicPartition()
	partition.Partition, partition.Timestamp, partition.CurrentLeaderEpoch = int32(role), -1, epoch
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic, topic.Partitions = Topic, []kmsg.ListOffsetsRequestTopicPartition{partition}
	req := kmsg.NewPtrListOffsetsRequest()
	req.Topics = []kmsg.ListOffsetsRequestTopic{topic}
	resp, err := req.RequestWith(ctx, r.client)
	if err != nil {
		return 0, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, fmt.Errorf("an answer for %d topics", len(resp.Topics))
	}
	got := resp.Topics[0].Partitions[0]
	return got.Offset, kerr.ErrorForCode(got.ErrorCode)
}

// askEpoch bounds how long a broker may take to say who leads a partition.
const askEpoch = time.Second

// epoch returns the newest leader epoch of a role's partition among the answers of a majority of the brokers. A broker that is
// cut off from the controller does not know that it has been replaced as the leader: it would still answer, with an end that is
// too low. If asked with a newer epoch than its own, it refuses.
func (r *Reader) epoch(ctx context.Context, role int) (int32, error) {
	limited, cancel := context.WithTimeout(ctx, askEpoch)
	defer cancel()
	brokers := r.client.SeedBrokers()
	answers := make(chan int32, len(brokers))
	for _, b := range brokers {
		go func() { answers <- epochBy(limited, b, role) }()
	}
	newest, known := int32(-1), 0
	for range brokers {
		if epoch := <-answers; epoch >= 0 {
			newest = max(newest, epoch)
			if known++; known > len(brokers)/2 {
				return newest, nil
			}
		}
	}
	return -1, fmt.Errorf("%d of %d brokers say who leads", known, len(brokers))
}

// epochBy returns the leader epoch that one broker knows, or −1.
func epochBy(ctx context.Context, b *kgo.Broker, role int) int32 {
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(Topic)
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{topic}
	resp, err := b.Request(ctx, req)
	if err != nil {
		return -1
	}
	for _, t := range resp.(*kmsg.MetadataResponse).Topics {
		for _, p := range t.Partitions {
			if int(p.Partition) == role {
				return p.LeaderEpoch
			}
		}
	}
	return -1
}

// Log reads all that was ever committed for some roles.
func (r *Reader) Log(ctx context.Context, roles int) ([]Entry, error) {
	var log []Entry
	r.keep = func(e Entry) { log = append(log, e) }
	for role := range roles {
		if _, _, err := r.Read(ctx, role); err != nil {
			return nil, fmt.Errorf("store: reading the log of role %d: %w", role, err)
		}
	}
	return log, nil
}

// MakeTopic makes Topic with a partition for each role. At least two of three brokers store an acknowledged record.
func MakeTopic(ctx context.Context, client kmsg.Requestor, roles int) error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = Topic, int32(roles), 3
	two := "2"
	setting := kmsg.NewCreateTopicsRequestTopicConfig()
	setting.Name, setting.Value = "min.insync.replicas", &two
	topic.Configs = append(topic.Configs, setting)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 30_000
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("store: making %s: %w", Topic, err)
	}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return fmt.Errorf("store: making %s: %w", Topic, err)
		}
	}
	return nil
}

// Close ends the client.
func (r *Reader) Close() { r.client.Close() }
