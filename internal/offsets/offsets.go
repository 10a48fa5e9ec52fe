// Package offsets answers a kafka.Admin's questions about the extent of logs from requests that
// name one end each, as Kafka's ListOffsets does. Both providers use it.
package offsets

import (
	"context"

	"github.com/goneli/neli/kafka"
)

// Ends asks for one end of the log of each given partition. End and Epoch of the answers are those of that end.
type Ends func(ctx context.Context, topic string, partitions []int32) ([]kafka.LogInfo, error)

// Of returns the extent of each of the topic's n partitions.
func Of(ctx context.Context, topic string, n int, starts, ends Ends) ([]kafka.OffsetRange, error) {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	logs, err := extents(ctx, topic, all, starts, ends)
	if err != nil {
		return nil, err
	}
	ranges := make([]kafka.OffsetRange, n)
	for i, l := range logs {
		ranges[i] = l.OffsetRange
	}
	return ranges, nil
}

// Log returns the extent of one partition, and the epoch of its end.
func Log(ctx context.Context, topic string, partition int, starts, ends Ends) (kafka.LogInfo, error) {
	logs, err := extents(ctx, topic, []int32{int32(partition)}, starts, ends)
	if err != nil {
		return kafka.LogInfo{}, err
	}
	return logs[0], nil
}

func extents(ctx context.Context, topic string, partitions []int32, starts, ends Ends) ([]kafka.LogInfo, error) {
	// The starts are asked for first: they only grow, so none comes out after its end. The epoch is the
	// one returned with the end; the one returned with the start is that of the first record.
	first, err := starts(ctx, topic, partitions)
	if err != nil {
		return nil, err
	}
	logs, err := ends(ctx, topic, partitions)
	if err != nil {
		return nil, err
	}
	for i := range logs {
		logs[i].Start = min(first[i].End, logs[i].End) // the end is smaller only if the log was recreated
	}
	return logs, nil
}
