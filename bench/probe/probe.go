// Package probe measures what a round trip through a Kafka is: a record is produced
// and read back by the same process, with the library's own clients: its properties,
// on a topic that it has created.
package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/bench/clients"
	"github.com/goneli/neli/bench/measure"
)

const (
	group    = "round-trips"
	topic    = group + ".neli"
	warming  = 30
	pace     = 20 * time.Millisecond // between two: beats do not follow each other closely
	patience = 30 * time.Second
)

// Probe keeps a producer and a reader. One goroutine uses it at a time.
type Probe struct {
	producer neli.Producer
	reader   neli.LogReader
	said     int // records
}

// Open has the library create the topic, and makes clients like its own.
func Open(ctx context.Context, bootstrap string) (*Probe, error) {
	producing, reading, err := properties(ctx, bootstrap)
	if err != nil {
		return nil, err
	}
	p, provider, silent := &Probe{}, neli.Confluent(), slog.New(slog.DiscardHandler)
	if p.producer, err = provider.Producer(producing, silent); err != nil {
		return nil, err
	}
	if p.reader, err = provider.LogReader(reading, silent); err != nil {
		p.Close()
		return nil, err
	}
	if err := p.assign(ctx, provider); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// properties are those that the library gives its clients, once the topic is there.
func properties(ctx context.Context, bootstrap string) (producing, reading map[string]string, err error) {
	began := time.Now()
	seen := clients.Observe(neli.Confluent(), func() time.Duration { return time.Since(began) })
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

// assign begins to read at the end.
func (p *Probe) assign(ctx context.Context, provider neli.Provider) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	admin, err := provider.Admin(p.producer)
	if err != nil {
		return err
	}
	defer admin.Close()
	extents, err := admin.Offsets(ctx, topic, 1)
	if err != nil {
		return err
	}
	return p.reader.Assign(topic, []int64{extents[0].End})
}

// Close disconnects.
func (p *Probe) Close() {
	if p.reader != nil {
		_ = p.reader.Close()
	}
	_ = p.producer.Close()
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
	value, began := fmt.Sprint(p.said), time.Now()
	// What is not acknowledged is not read back.
	if err := p.producer.Append(topic, 0, []byte(value), func(error) {}); err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		r, ok, err := p.reader.Poll(100 * time.Millisecond)
		if err == nil && ok && string(r.Value) == value {
			return measure.Milliseconds(time.Since(began)), nil
		}
	}
	return 0, errors.New("a record was not read back")
}
