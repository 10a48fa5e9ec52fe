package franz

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/internal/offsets"
	"github.com/goneli/neli/kafka"
)

// admin sends its requests over a producer's connections. It makes the requests itself: kadm
// answers questions about topics from what the client knows already, but whether a topic is still
// the same has to be asked each time.
type admin struct {
	producer *producer

	ctx    context.Context // done when closed
	cancel context.CancelFunc
}

// requestTimeout is how long brokers may take to create a topic, unless the context ends earlier.
const requestTimeout = 30 * time.Second

func (provider) Admin(p kafka.Producer) (kafka.Admin, error) {
	of, ok := p.(*producer)
	if !ok {
		return nil, fmt.Errorf("%T is not a producer of this provider", p)
	}
	a := &admin{producer: of}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a, nil
}

func (a *admin) Close() { a.cancel() }

// ask makes a request and reads the answer. It returns when ctx or a is done. The request itself
// may still wait for a connection, until the client is closed.
func ask[R kmsg.Response](ctx context.Context, a *admin, doing string, req interface {
	RequestWith(context.Context, kmsg.Requestor) (R, error)
}, read func(R) error) error {
	if a.ctx.Err() != nil {
		return classify(doing, errClosed)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()

	type answer struct {
		resp R
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		resp, err := req.RequestWith(ctx, a.producer.kafka)
		answered <- answer{resp, err}
	}()
	var err error
	select {
	case got := <-answered:
		if err = got.err; err == nil {
			err = read(got.resp)
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	return a.producer.outcome(doing, err)
}

// said returns a broker's error, with the broker's own message if there is one.
func said(code int16, words *string) error {
	err := kerr.ErrorForCode(code)
	if err != nil && words != nil && *words != "" {
		return fmt.Errorf("%w (%s)", err, *words)
	}
	return err
}

func (a *admin) Brokers(ctx context.Context, _ bool) (brokers []kafka.BrokerInfo, err error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // no topics; nil would ask for all
	err = ask(ctx, a, "describe cluster", req, func(resp *kmsg.MetadataResponse) error {
		for _, b := range resp.Brokers {
			info := kafka.BrokerInfo{ID: int(b.NodeID)}
			if b.Rack != nil {
				info.Rack = *b.Rack
			}
			brokers = append(brokers, info)
		}
		return nil
	})
	return brokers, err
}

func (a *admin) Topic(ctx context.Context, topic string) (info kafka.TopicInfo, err error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, t)
	err = ask(ctx, a, "describe topic "+topic, req, func(resp *kmsg.MetadataResponse) error {
		if len(resp.Topics) != 1 {
			return fmt.Errorf("%d descriptions of one topic", len(resp.Topics))
		}
		t := resp.Topics[0]
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return err
		}
		info = kafka.TopicInfo{ID: topicID(t.TopicID), Partitions: len(t.Partitions), Brokers: make([][]int, len(t.Partitions))}
		for i, p := range t.Partitions {
			if i == 0 || len(p.Replicas) < info.Replicas {
				info.Replicas = len(p.Replicas)
			}
			if p.Partition < 0 || int(p.Partition) >= len(t.Partitions) { // the partitions come in any order
				return fmt.Errorf("a broker described partition %d of a topic with %d", p.Partition, len(t.Partitions))
			}
			for _, id := range p.Replicas {
				info.Brokers[p.Partition] = append(info.Brokers[p.Partition], int(id))
			}
		}
		return nil
	})
	return info, err
}

// topicID returns a topic's id as librdkafka writes it, since records of members with either client contain it.
func topicID(id [16]byte) string { return base64.RawStdEncoding.EncodeToString(id[:]) }

func (a *admin) CreateTopic(ctx context.Context, spec kafka.TopicSpec) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.ValidateOnly = int32(requestTimeout.Milliseconds()), spec.ValidateOnly
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = spec.Name, int32(spec.Partitions), int16(spec.Replicas)
	if spec.Replicas == 0 {
		t.ReplicationFactor = -1 // the cluster's default
	}
	for i, brokers := range spec.Brokers {
		t.NumPartitions, t.ReplicationFactor = -1, -1 // the broker accepts either these or the assignment
		r := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		r.Partition = int32(i)
		for _, id := range brokers {
			r.Replicas = append(r.Replicas, int32(id))
		}
		t.ReplicaAssignment = append(t.ReplicaAssignment, r)
	}
	for name, value := range spec.Settings {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = name, kmsg.StringPtr(value)
		t.Configs = append(t.Configs, c)
	}
	req.Topics = append(req.Topics, t)
	return ask(ctx, a, "create topic "+spec.Name, req, func(resp *kmsg.CreateTopicsResponse) error {
		if len(resp.Topics) != 1 {
			return fmt.Errorf("%d answers for one topic", len(resp.Topics))
		}
		return said(resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage)
	})
}

func (a *admin) Settings(ctx context.Context, topic string) (map[string]string, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	req.Resources = append(req.Resources, r)
	settings := map[string]string{}
	err := ask(ctx, a, "describe settings of "+topic, req, func(resp *kmsg.DescribeConfigsResponse) error {
		for _, r := range resp.Resources {
			if err := said(r.ErrorCode, r.ErrorMessage); err != nil {
				return err
			}
			for _, c := range r.Configs {
				if c.Value != nil {
					settings[c.Name] = *c.Value
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return settings, nil
}

// Special timestamps for ListOffsets.
const (
	logStart = -2
	logEnd   = -1
)

func (a *admin) Offsets(ctx context.Context, topic string, n int) ([]kafka.OffsetRange, error) {
	return offsets.Of(ctx, topic, n, a.ends(logStart), a.ends(logEnd))
}

func (a *admin) Log(ctx context.Context, topic string, partition int) (kafka.LogInfo, error) {
	return offsets.Log(ctx, topic, partition, a.ends(logStart), a.ends(logEnd))
}

// ends asks for one end of the log of each given partition. Uncommitted records count, since the
// reader sees them, too.
func (a *admin) ends(which int64) offsets.Ends {
	return func(ctx context.Context, topic string, partitions []int32) ([]kafka.LogInfo, error) {
		return a.endsAt(ctx, topic, partitions, which)
	}
}

func (a *admin) endsAt(ctx context.Context, topic string, partitions []int32, which int64) ([]kafka.LogInfo, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	index := make(map[int32]int, len(partitions))
	for i, partition := range partitions {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = partition, which
		index[partition] = i
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	ends := make([]kafka.LogInfo, len(partitions))
	err := ask(ctx, a, "list offsets of "+topic, req, func(resp *kmsg.ListOffsetsResponse) error {
		known := map[int32]bool{}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				i, ok := index[p.Partition]
				switch {
				case p.ErrorCode != 0:
					return kerr.ErrorForCode(p.ErrorCode)
				case p.Offset < 0:
					return fmt.Errorf("partition %d: offset %d is not a position", p.Partition, p.Offset)
				case ok:
					ends[i].End, ends[i].Epoch, known[p.Partition] = p.Offset, int(p.LeaderEpoch), true
				}
			}
		}
		if len(known) != len(partitions) {
			return fmt.Errorf("%d of %d partitions answered", len(known), len(partitions))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ends, nil
}
