package kafkalog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/goneli/neli/kafka"
)

// fakeAdmin answers as a cluster of one broker with an empty topic of one partition does.
type fakeAdmin struct{}

func (fakeAdmin) Brokers(context.Context, bool) ([]kafka.BrokerInfo, error) {
	return []kafka.BrokerInfo{{ID: 1}}, nil
}

func (fakeAdmin) Topic(context.Context, string) (kafka.TopicInfo, error) {
	return kafka.TopicInfo{ID: "id", Partitions: 1, Replicas: 1}, nil
}

func (fakeAdmin) CreateTopic(context.Context, kafka.TopicSpec) error { return nil }

func (fakeAdmin) Settings(context.Context, string) (map[string]string, error) { return nil, nil }

func (fakeAdmin) Offsets(context.Context, string, int) ([]kafka.OffsetRange, error) {
	return []kafka.OffsetRange{{}}, nil
}

func (fakeAdmin) Log(context.Context, string, int) (kafka.LogInfo, error) {
	return kafka.LogInfo{}, nil
}

func (fakeAdmin) Close() {}

// fakeProducer confirms what it is given, unless it is silent or dead.
type fakeProducer struct {
	mu     sync.Mutex
	silent bool  // it reports nothing until it is closed
	dead   error // the error of Append
	closed bool
	calls  []string
	held   []func(error)
	wg     sync.WaitGroup
}

func (p *fakeProducer) Append(_ string, _ int, _ []byte, report func(error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "Append")
	switch {
	case p.dead != nil:
		return p.dead
	case p.silent:
		p.held = append(p.held, report)
	default:
		p.wg.Go(func() { report(nil) })
	}
	return nil
}

func (p *fakeProducer) Purge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "Purge")
}

func (p *fakeProducer) Throttled() time.Duration { return 0 }

func (p *fakeProducer) Close() error {
	p.mu.Lock()
	for _, report := range p.held {
		p.wg.Go(func() { report(errors.New("purged")) })
	}
	p.held, p.closed = nil, true
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}

// fakeProvider makes producers only, and keeps them.
type fakeProvider struct {
	kafka.Provider
	admin     kafka.Admin // nil: a fakeAdmin
	producers []*fakeProducer
}

func (f *fakeProvider) Producer(map[string]string, *slog.Logger) (kafka.Producer, error) {
	p := &fakeProducer{}
	f.producers = append(f.producers, p)
	return p, nil
}

func (f *fakeProvider) Admin(kafka.Producer) (kafka.Admin, error) {
	if f.admin != nil {
		return f.admin, nil
	}
	return fakeAdmin{}, nil
}

// errReported is a failure that says nothing of its cause.
var errReported = errors.New("reported")

func noProperties() map[string]string { return nil }
