//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/goneli/neli/kafka"
)

// confluentProducer appends through librdkafka's queue. One goroutine, deliveries,
// makes all reports; Close waits for it.
type confluentProducer struct {
	client *ck.Producer
	log    *slog.Logger
	logs   *confluentLogs
	confluentStats

	mu      sync.Mutex
	closed  bool
	waiting map[*confluentDelivery]struct{} // appended and not reported
	empty   chan struct{}                   // closed once closed and nothing waits

	// refused is the last authentication failure since anything worked. It
	// reaches the event channel only; what waits for the broker just times out.
	refused atomic.Pointer[ck.Error]

	delivered chan struct{} // closed when deliveries has returned
	closeOnce sync.Once
	closeErr  error
}

// confluentDelivery travels through the client with its record.
type confluentDelivery struct {
	topic  string
	report func(error)
}

// confluentSparse connects to brokers only when they are needed. It must be off where the
// admin client asks (librdkafka 2.15.1, rdkafka_broker.c): a request that waits for a broker
// that is down asks for a connection each time that one has failed, and each time that
// starts the next attempt at once, whatever reconnect.backoff.ms says. Thousands of attempts
// a second keep a core busy until the request gives up, and the next one does the same. The
// price is an idle connection to each broker.
const confluentSparse = "enable.sparse.connections"

func (c confluent) Producer(props map[string]string, log *slog.Logger) (kafka.Producer, error) {
	logs := c.logs(log, props)
	config, err := confluentConfig(props, logs)
	if err != nil {
		return nil, err
	}
	if _, chosen := config[confluentSparse]; !chosen {
		config[confluentSparse] = false
	}
	config["go.batch.producer"] = false
	config["go.delivery.report.fields"] = "none" // errors are always there
	config["go.events.channel.size"] = 1024      // the default takes 16 MB
	config["go.produce.channel.size"] = 0        // not used; as large
	client, err := ck.NewProducer(&config)
	if err != nil {
		return nil, logs.refused(confluentFaults(err, config, func(config *ck.ConfigMap) error {
			client, err := ck.NewProducer(config)
			if err == nil {
				client.Close()
			}
			return err
		}))
	}
	p := &confluentProducer{
		client:    client,
		log:       log,
		logs:      logs,
		waiting:   map[*confluentDelivery]struct{}{},
		empty:     make(chan struct{}),
		delivered: make(chan struct{}),
	}
	go p.deliveries()
	logs.login.keep(client)
	return p, nil
}

func (p *confluentProducer) Append(topic string, partition int, value []byte, report func(error)) error {
	d := &confluentDelivery{topic: topic, report: report}
	msg := ck.Message{
		TopicPartition: ck.TopicPartition{Topic: &d.topic, Partition: int32(partition)},
		Value:          value,
		Opaque:         d,
	}
	// Held while the client takes the record, which it does without waiting: so
	// nothing is appended after Close has purged, and no report overtakes this.
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClientClosed
	}
	if err := p.client.Produce(&msg, nil); err != nil {
		return asConfluentError("append", err)
	}
	p.waiting[d] = struct{}{}
	return nil
}

// deliveries reports until the client closes its event channel.
func (p *confluentProducer) deliveries() {
	defer close(p.delivered)
	for ev := range p.client.Events() {
		switch ev := ev.(type) {
		case *ck.Message:
			if d, ok := ev.Opaque.(*confluentDelivery); ok {
				p.report(d, ev.TopicPartition.Error)
			}
		case *ck.Stats:
			p.count(ev.String())
		case ck.Error:
			p.log.Debug("the producer tells of an error", "error", confluentNamed(ev.String()), "code", int(ev.Code()))
			p.logs.login.told(ev)
			if confluentKind(ev) == kafka.ErrAuthentication {
				p.refused.Store(&ev)
			}
			if ev.Code() != ck.ErrAllBrokersDown { // of which others tell the reason
				p.logs.failed(ev.String())
			}
		}
	}
}

func (p *confluentProducer) report(d *confluentDelivery, err error) {
	if !p.take(d) {
		return
	}
	d.report(p.outcome("append", err))
	p.reported()
}

// take makes sure that a record is reported once, whoever comes first.
func (p *confluentProducer) take(d *confluentDelivery) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.waiting[d]
	delete(p.waiting, d)
	return ok
}

func (p *confluentProducer) reported() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed && len(p.waiting) == 0 {
		p.closeEmpty()
	}
}

func (p *confluentProducer) closeEmpty() {
	select {
	case <-p.empty:
	default:
		close(p.empty)
	}
}

// outcome classifies the result of a request, and tells of a time-out what it came
// from: a refused authentication takes its place, a lost connection is added.
func (p *confluentProducer) outcome(doing string, err error) error {
	if err == nil {
		p.refused.Store(nil)
		p.logs.failure.Store(nil)
		p.logs.login.worked()
		return nil
	}
	err = asConfluentError(doing, err)
	if !confluentPassing(err) {
		return err
	}
	if refused := p.refused.Load(); refused != nil {
		return asConfluentError(doing, *refused)
	}
	if refused := p.logs.login.refusal(); refused != nil {
		return asConfluentError(doing, *refused)
	}
	return p.logs.explain(err)
}

// confluentPassing tells an error of no particular kind.
func confluentPassing(err error) bool {
	var ce *confluentError
	return errors.As(err, &ce) && ce.kind == nil
}

func (p *confluentProducer) Purge() {
	// It fails only for a client that is closed.
	_ = p.client.Purge(ck.PurgeQueue | ck.PurgeInFlight | ck.PurgeNonBlocking)
}

func (p *confluentProducer) Close() error {
	p.closeOnce.Do(func() {
		p.mu.Lock()
		p.closed = true
		if len(p.waiting) == 0 {
			p.closeEmpty()
		}
		p.mu.Unlock()

		p.logs.login.stop()
		p.closeErr = confluentClose("producer", p.shut)
		p.abandon() // nothing, unless the bound was hit
	})
	return p.closeErr
}

// shut drains and closes the client. The client's own Close forgets the reports
// that are still to come, so they are waited for first.
func (p *confluentProducer) shut() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	giveUp := time.After(confluentCloseBound / 2)
	for drained := false; !drained; {
		// Again and again: a record can slip from the queue into flight
		// between the two halves of one purge.
		p.Purge()
		select {
		case <-p.empty:
			drained = true
		case <-giveUp:
			drained = true
		case <-tick.C:
		}
	}
	p.client.Close()
	<-p.delivered
	p.abandon()
	p.logs.close()
}

// abandon reports as failed whatever the client has not reported.
func (p *confluentProducer) abandon() {
	p.mu.Lock()
	left := p.waiting
	p.waiting = map[*confluentDelivery]struct{}{}
	p.mu.Unlock()
	for d := range left {
		d.report(asConfluentError("append", errClientClosed))
	}
}
