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
	topic    = "round-trips"
	warming  = 30
	pace     = 20 * time.Millisecond // between two: beats do not follow each other closely
	patience = 30 * time.Second
)

// Probe keeps a producer and a consumer. One goroutine uses it at a time.
type Probe struct {
	producer *kafka.Producer
	consumer *kafka.Consumer
	said     int // records
}

// Open creates the topic, which has one partition with a replica on each broker.
func Open(ctx context.Context, bootstrap string, brokers int) (*Probe, error) {
	if err := create(ctx, bootstrap, brokers); err != nil {
		return nil, err
	}
	producer, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "go.delivery.reports": false})
	if err != nil {
		return nil, err
	}
	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": false, "auto.offset.reset": "earliest"})
	if err != nil {
		producer.Close()
		return nil, err
	}
	p := &Probe{producer: producer, consumer: consumer}
	name := topic
	if err := consumer.Assign([]kafka.TopicPartition{{Topic: &name, Partition: 0, Offset: kafka.OffsetBeginning}}); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close disconnects.
func (p *Probe) Close() {
	_ = p.consumer.Close()
	p.producer.Close()
}

// RoundTrips returns n of them, in milliseconds.
func (p *Probe) RoundTrips(ctx context.Context, n int) ([]float64, error) {
	var taken []float64
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for i := range warming + n {
		<-tick.C
		ms, err := p.trip(ctx)
		if err != nil {
			return nil, err
		}
		if i >= warming {
			taken = append(taken, ms)
		}
	}
	return taken, nil
}

// InRow returns n that follow each other at once, after one that warms.
func (p *Probe) InRow(ctx context.Context, n int) ([]float64, error) {
	if _, err := p.trip(ctx); err != nil {
		return nil, err
	}
	var taken []float64
	for range n {
		ms, err := p.trip(ctx)
		if err != nil {
			return nil, err
		}
		taken = append(taken, ms)
	}
	return taken, nil
}

func (p *Probe) trip(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p.said++
	value, name, began := fmt.Sprint(p.said), topic, time.Now()
	if err := p.producer.Produce(&kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &name, Partition: 0}, Value: []byte(value)}, nil); err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		if m, ok := p.consumer.Poll(100).(*kafka.Message); ok && string(m.Value) == value {
			return measure.Milliseconds(time.Since(began)), m.TopicPartition.Error
		}
	}
	return 0, errors.New("a record was not read back")
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
