package franz

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/kafka"
)

// producer appends through franz-go's buffer. A record is finished when the broker has answered,
// when its time has run out, or when it is purged, whichever comes first. One goroutine,
// deliveries, then reports it. A time-out or a purge ends the record's context. franz-go checks
// that context before a request and when it gets the answer; it also ends a request in flight.
type producer struct {
	*client
	kafka *link
	limit int // how many records may wait

	mu      sync.Mutex
	closed  bool
	waiting int // how many records are appended but not yet reported
	results []result
	// The contexts of all records between two purges derive from this one.
	generation context.Context
	purge      context.CancelCauseFunc

	wake      chan struct{} // has a buffer for one
	delivered chan struct{} // closed when deliveries has returned
	closeOnce sync.Once
}

// result is a report to be made.
type result struct {
	report func(error)
	err    error
}

var (
	errPurged   = errors.New("purged")
	errTimedOut = errors.New("not acknowledged in time")
	errFull     = errors.New("too many records are waiting to be acknowledged")
)

// producing returns the options that a lease depends on. Without idempotence, one request is in
// flight for each broker, and a record in flight can be given up.
func producing(*settings) []kgo.Opt {
	return []kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.DisableIdempotentWrite(),
		kgo.MaxProduceRequestsInflightPerBroker(1),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.UnknownTopicRetries(-1), // only a record's time limits them, as for other failures
		kgo.RecordDeliveryTimeout(0),
	}
}

func (p provider) Producer(props map[string]string, log *slog.Logger) (kafka.Producer, error) {
	c, err := p.newClient(forProducer, props, log, producing)
	if err != nil {
		return nil, err
	}
	made, err := c.dial(producing(c.settings)...)
	if err != nil {
		return nil, err
	}
	limit, _ := made.OptValue(kgo.MaxBufferedRecords).(int64)
	q := &producer{client: c, kafka: made, limit: int(limit), wake: make(chan struct{}, 1), delivered: make(chan struct{})}
	q.generation, q.purge = context.WithCancelCause(context.Background())
	go q.deliveries()
	return q, nil
}

func (p *producer) Append(topic string, partition int, value []byte, report func(error)) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return errClosed
	}
	// franz-go would accept the record only to fail it, and would block the caller if many have failed.
	if p.waiting >= p.limit {
		p.mu.Unlock()
		return classify("append", errFull)
	}
	p.waiting++
	ctx, cancel := context.WithTimeoutCause(p.generation, p.settings.delivery, errTimedOut)
	p.mu.Unlock()

	var once sync.Once
	over := func(err error) {
		once.Do(func() { p.over(result{report, err}) })
	}
	stop := context.AfterFunc(ctx, func() { over(context.Cause(ctx)) })
	value = slices.Clone(value)
	var send func()
	promise := func(_ *kgo.Record, err error) {
		if gaveUp(err) && ctx.Err() == nil {
			send() // it was given up together with an earlier record of its partition
			return
		}
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		over(err)
		stop()
		cancel()
	}
	send = func() {
		p.kafka.TryProduce(ctx, &kgo.Record{Topic: topic, Partition: int32(partition), Value: value}, promise)
	}
	send()
	return nil
}

// gaveUp reports whether the context of a record, or of one before it, has ended.
func gaveUp(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// over passes a report to the goroutine that makes them.
func (p *producer) over(r result) {
	p.mu.Lock()
	p.results = append(p.results, r)
	p.mu.Unlock()
	p.rouse()
}

func (p *producer) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// deliveries makes the reports until the producer is closed and no record waits.
func (p *producer) deliveries() {
	defer close(p.delivered)
	for range p.wake {
		p.mu.Lock()
		due := p.results
		p.results = nil
		p.waiting -= len(due)
		last := p.closed && p.waiting == 0
		p.mu.Unlock()
		for _, r := range due {
			r.report(p.outcome("append", r.err))
		}
		if last {
			return
		}
	}
}

func (p *producer) Purge() { p.drop(false) }

// drop purges all records. If closing, it also closes the producer to new ones.
func (p *producer) drop(closing bool) {
	p.mu.Lock()
	purge := p.purge
	p.generation, p.purge = context.WithCancelCause(context.Background())
	p.closed = p.closed || closing
	p.mu.Unlock()
	purge(errPurged)
}

func (p *producer) Close() error {
	p.closeOnce.Do(func() {
		p.drop(true)
		p.rouse()
		<-p.delivered
		p.kafka.shut(0) // nothing is left to send
		p.drop(true)    // ends the last generation
		p.endTokens()
	})
	return nil
}
