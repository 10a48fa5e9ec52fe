package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// reports is the topic for the reports. It has one partition.
type reports struct {
	brokers kgo.Opt
	topic   string
}

// create creates the topic unless it exists.
func (r reports) create(ctx context.Context) error {
	client, err := kgo.NewClient(r.brokers)
	if err != nil {
		return err
	}
	defer client.Close()
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = r.topic, 1, -1
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); !errors.Is(err, kerr.TopicAlreadyExists) {
		return err
	}
	return nil
}

// last returns the number of the last committed report. It reads the present end of the log, including
// open transactions, and waits until all transactions before that end are committed or aborted.
func (r reports) last(ctx context.Context) (number int, err error) {
	client, err := kgo.NewClient(r.brokers, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.KeepControlRecords(), // so that the position is known
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	end, err := r.end(ctx, client)
	for position := int64(0); err == nil && position < end; {
		fetches := client.PollFetches(ctx)
		if err = fetches.Err0(); err != nil {
			break
		}
		fetches.EachRecord(func(record *kgo.Record) {
			if position = record.Offset + 1; err == nil && !record.Attrs.IsControl() {
				_, err = fmt.Sscan(string(record.Value), &number)
			}
		})
	}
	return number, err
}

// end returns the offset after the last record, with isolation level read_uncommitted.
func (r reports) end(ctx context.Context, client *kgo.Client) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	t := kmsg.NewListOffsetsRequestTopic()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	req.ReplicaID, t.Topic, p.Timestamp = -1, r.topic, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return 0, err
	}
	of := resp.Topics[0].Partitions[0]
	return of.Offset, kerr.ErrorForCode(of.ErrorCode)
}
