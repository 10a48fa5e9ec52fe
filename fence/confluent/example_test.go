//go:build cgo && !neli_nolibrdkafka

package confluent_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/fence/confluent"
)

// always takes the place of a neli.Leadership here.
type always struct{}

func (always) Valid() bool { return true }

// A broker in memory; in production name yours.
func cluster() (kafka.ConfigMap, func()) {
	broker, err := kafka.NewMockCluster(1)
	if err != nil {
		log.Fatal(err)
	}
	if err := broker.CreateTopic("invoices", 1, 1); err != nil { // a Producer creates none
		log.Fatal(err)
	}
	return kafka.ConfigMap{"bootstrap.servers": broker.BootstrapServers(), "log_level": 0}, broker.Close
}

func ExampleNew() {
	config, stop := cluster()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := confluent.New(ctx, config) // once, when the program starts
	fmt.Println(err)
	// Output: <nil>
}

func ExampleOpener_Open() {
	config, stop := cluster()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	kafkas, err := confluent.New(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	topic := "invoices"
	open := kafkas.Open(fence.TransactionalID("invoicing", 0))
	err = fence.Transactions(ctx, always{}, open, func(ctx context.Context, p *confluent.Producer) error {
		return p.Commit(ctx, &kafka.Message{
			TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: kafka.PartitionAny},
			Value:          []byte("invoice 17"),
		})
	})
	fmt.Println("committed:", err == nil)
	// Output: committed: true
}

func ExampleOpener_AppendOnly() {
	config, stop := cluster()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	kafkas, err := confluent.New(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := kafkas.AppendOnly(ctx, "invoices"); err != nil {
		// The topic is compacted, or the broker does not answer this question, like the one in memory.
		fmt.Println("the topic is not for fence.Filter")
	}
	// Output: the topic is not for fence.Filter
}
