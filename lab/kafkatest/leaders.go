package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Controller returns the broker that is the active controller: the leader of the cluster's own metadata log. It
// does not use metadata, where brokers name an arbitrary broker as controller. It asks one broker after another
// until one answers. The result may be out of date when it returns.
func (c *Cluster) Controller(ctx context.Context) (*Broker, error) {
	var wrong []error
	for _, b := range c.brokers {
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		id, err := b.quorumLeader(limited)
		cancel()
		if err != nil {
			wrong = append(wrong, b.errorf("asking for the controller: %w", err))
			continue
		}
		if i := slices.IndexFunc(c.brokers, func(b *Broker) bool { return b.ID == id }); i >= 0 {
			return c.brokers[i], nil
		}
		wrong = append(wrong, b.errorf("it says that %d is the controller", id))
	}
	return nil, errors.Join(wrong...)
}

func (b *Broker) quorumLeader(ctx context.Context) (int, error) {
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic = "__cluster_metadata"
	topic.Partitions = append(topic.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req := kmsg.NewPtrDescribeQuorumRequest()
	req.Topics = append(req.Topics, topic)
	resp, err := b.ask(ctx, req)
	if err != nil {
		return 0, err
	}
	answer := resp.(*kmsg.DescribeQuorumResponse)
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return 0, err
	}
	if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return 0, errors.New("the answer is not about one partition")
	}
	p := answer.Topics[0].Partitions[0]
	return int(p.LeaderID), kerr.ErrorForCode(p.ErrorCode)
}

// Lead makes b the leader of all partitions of a topic, by clean elections, and returns when b confirms it. b
// must be an in-sync replica of each. It also becomes the preferred replica, so that Kafka does not move the
// leadership back by itself while b is up.
func (b *Broker) Lead(ctx context.Context, topic string) error {
	return b.poll(ctx, "making it the leader of "+topic, func(ctx context.Context) error {
		partitions, err := b.partitions(ctx, topic)
		if err != nil {
			return err
		}
		if b.leads(partitions) {
			return nil
		}
		if err := b.prefer(ctx, topic, partitions); err != nil {
			return err
		}
		return errors.Join(b.elect(ctx, topic, partitions), errors.New("not yet"))
	})
}

// leads reports whether b leads, and is preferred.
func (b *Broker) leads(partitions []kmsg.MetadataResponseTopicPartition) bool {
	return !slices.ContainsFunc(partitions, func(p kmsg.MetadataResponseTopicPartition) bool {
		return int(p.Leader) != b.ID || int(p.Replicas[0]) != b.ID
	})
}

func (b *Broker) partitions(ctx context.Context, topic string) ([]kmsg.MetadataResponseTopicPartition, error) {
	req := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = &topic
	req.Topics = append(req.Topics, asked)
	resp, err := b.ask(ctx, req)
	if err != nil {
		return nil, err
	}
	topics := resp.(*kmsg.MetadataResponse).Topics
	if len(topics) != 1 {
		return nil, fmt.Errorf("the answer is about %d topics", len(topics))
	}
	if err := kerr.ErrorForCode(topics[0].ErrorCode); err != nil {
		return nil, err
	}
	for _, p := range topics[0].Partitions {
		if !slices.Contains(p.Replicas, int32(b.ID)) {
			return nil, stop{fmt.Errorf("partition %d is on brokers %v", p.Partition, p.Replicas)}
		}
	}
	return topics[0].Partitions, nil
}

// prefer makes b the preferred replica. It only changes the order of replicas, and moves no data.
func (b *Broker) prefer(ctx context.Context, topic string, partitions []kmsg.MetadataResponseTopicPartition) error {
	asked := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	asked.Topic = topic
	for _, p := range partitions {
		to := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		to.Partition, to.Replicas = p.Partition, first(p.Replicas, int32(b.ID))
		asked.Partitions = append(asked.Partitions, to)
	}
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.Topics = append(req.Topics, asked)
	resp, err := b.ask(ctx, req)
	if err != nil {
		return err
	}
	answer := resp.(*kmsg.AlterPartitionAssignmentsResponse)
	wrong := []error{kerr.ErrorForCode(answer.ErrorCode)}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			wrong = append(wrong, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	return errors.Join(wrong...)
}

// elect makes the preferred replicas the leaders. A replica that already leads is no error.
func (b *Broker) elect(ctx context.Context, topic string, partitions []kmsg.MetadataResponseTopicPartition) error {
	asked := kmsg.NewElectLeadersRequestTopic()
	asked.Topic = topic
	for _, p := range partitions {
		asked.Partitions = append(asked.Partitions, p.Partition)
	}
	req := kmsg.NewPtrElectLeadersRequest()
	req.Topics = append(req.Topics, asked)
	resp, err := b.ask(ctx, req)
	if err != nil {
		return err
	}
	answer := resp.(*kmsg.ElectLeadersResponse)
	wrong := []error{kerr.ErrorForCode(answer.ErrorCode)}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != kerr.ElectionNotNeeded.Code {
				wrong = append(wrong, kerr.ErrorForCode(p.ErrorCode))
			}
		}
	}
	return errors.Join(wrong...)
}

// first returns the ids with id moved to the front.
func first(ids []int32, id int32) []int32 {
	others := slices.DeleteFunc(slices.Clone(ids), func(other int32) bool { return other == id })
	return append([]int32{id}, others...)
}
