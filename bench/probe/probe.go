// Package probe measures what a round trip through a Kafka is: a record is produced
// with acks=all and read back by the same process.
package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/goneli/neli/bench/measure"
)

const (
	topic   = "round-trips"
	warming = 30
	pace    = 20 * time.Millisecond // between two: beats do not follow each other closely
)

// RoundTrips returns n of them, in milliseconds. The topic has one partition, with a
// replica on each broker.
func RoundTrips(ctx context.Context, bootstrap string, brokers, n int) ([]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := create(ctx, bootstrap, brokers); err != nil {
		return nil, err
	}
	producer, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "go.delivery.reports": false})
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": false, "auto.offset.reset": "earliest"})
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	name := topic
	if err := consumer.Assign([]kafka.TopicPartition{{Topic: &name, Partition: 0, Offset: kafka.OffsetBeginning}}); err != nil {
		return nil, err
	}
	var taken []float64
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for i := range warming + n {
		<-tick.C
		value := fmt.Sprint(i)
		began := time.Now()
		if err := producer.Produce(&kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &name, Partition: 0}, Value: []byte(value)}, nil); err != nil {
			return nil, err
		}
		if err := read(ctx, consumer, value); err != nil {
			return nil, err
		}
		if i >= warming {
			taken = append(taken, measure.Milliseconds(time.Since(began)))
		}
	}
	return taken, nil
}

func read(ctx context.Context, consumer *kafka.Consumer, value string) error {
	for ctx.Err() == nil {
		if m, ok := consumer.Poll(100).(*kafka.Message); ok && string(m.Value) == value {
			return m.TopicPartition.Error
		}
	}
	return errors.New("a record was not read back")
}

func create(ctx context.Context, bootstrap string, brokers int) error {
	admin, err := kafka.NewAdminClient(&kafka.ConfigMap{"bootstrap.servers": bootstrap})
	if err != nil {
		return err
	}
	defer admin.Close()
	made, err := admin.CreateTopics(ctx, []kafka.TopicSpecification{{Topic: topic, NumPartitions: 1, ReplicationFactor: brokers}})
	if err != nil {
		return err
	}
	if e := made[0].Error; e.Code() != kafka.ErrNoError {
		return e
	}
	return nil
}
