// Package probe measures round trips: a process appends a record to a log and reads it back. With Kafka it uses clients with
// the library's properties, on a topic that the library has created. With a log host in another process it uses the
// library's connection.
package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/confluent"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/clients"
)

const (
	group    = "round-trips"
	topic    = group + ".neli"
	warming  = 30
	pace     = 20 * time.Millisecond // pause between two round trips; beats do not follow each other closely either
	patience = 30 * time.Second
	wait     = 100 * time.Millisecond
)

// Probe keeps a log open. One goroutine uses it at a time.
type Probe struct {
	way  way
	said int // records
}

// way appends records to a log and reads them back.
type way interface {
	append(value []byte) error
	// read waits for a record for a tenth of a second.
	read(ctx context.Context) (value []byte, ok bool)
	close()
}

// Open lets the library create the topic, and makes clients like the library's.
func Open(ctx context.Context, bootstrap string) (*Probe, error) {
	producing, reading, err := properties(ctx, bootstrap)
	if err != nil {
		return nil, err
	}
	k, silent := &kafkaWay{}, slog.New(slog.DiscardHandler)
	provider, err := confluent.New()
	if err != nil {
		return nil, err
	}
	if k.producer, err = provider.Producer(producing, silent); err != nil {
		return nil, err
	}
	if k.reader, err = provider.LogReader(reading, silent); err != nil {
		k.close()
		return nil, err
	}
	if err := k.assign(ctx, provider); err != nil {
		k.close()
		return nil, err
	}
	return &Probe{way: k}, nil
}

// properties are those that the library gives its clients, once the topic is there.
func properties(ctx context.Context, bootstrap string) (producing, reading map[string]string, err error) {
	provider, err := confluent.New()
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	seen := clients.Observe(provider, func() time.Duration { return time.Since(began) })
	n, err := neli.New(neli.Config{KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": bootstrap}, LeaderGroupID: group, Provider: seen})
	if err != nil {
		return nil, nil, err
	}
	defer n.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		if producing, reading = seen.Properties(); producing != nil && reading != nil && seen.Metadata() > 0 {
			return producing, reading, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("waiting for the library's clients: %w", context.Cause(ctx))
		}
	}
}

// kafkaWay is a producer and a reader.
type kafkaWay struct {
	producer kafka.Producer
	reader   kafka.LogReader
}

// assign begins to read at the end.
func (k *kafkaWay) assign(ctx context.Context, provider kafka.Provider) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	admin, err := provider.Admin(k.producer)
	if err != nil {
		return err
	}
	defer admin.Close()
	extents, err := admin.Offsets(ctx, topic, 1)
	if err != nil {
		return err
	}
	return k.reader.Assign(topic, []int64{extents[0].End})
}

// append does not wait for the acknowledgement, since only an acknowledged record is read back.
func (k *kafkaWay) append(value []byte) error {
	return k.producer.Append(topic, 0, value, func(error) {})
}

func (k *kafkaWay) read(context.Context) (value []byte, ok bool) {
	r, ok, err := k.reader.Poll(wait)
	return r.Value, ok && err == nil
}

func (k *kafkaWay) close() {
	if k.reader != nil {
		_ = k.reader.Close()
	}
	_ = k.producer.Close()
}

// Close disconnects.
func (p *Probe) Close() { p.way.close() }

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

// InRow returns n round trips that follow each other at once, after one for warming up.
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
	value, began := fmt.Sprint(p.said), time.Now()
	if err := p.way.append([]byte(value)); err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		if got, ok := p.way.read(ctx); ok && string(got) == value {
			return measure.Milliseconds(time.Since(began)), nil
		}
	}
	return 0, errors.New("a record was not read back")
}
