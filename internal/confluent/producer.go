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

// confluentProducer appends through librdkafka's queue. One goroutine, deliveries, passes on the
// client's reports, and Close waits for it.
type confluentProducer struct {
	client   *ck.Producer
	log      *slog.Logger
	logs     *confluentLogs
	patience time.Duration // how long the admin client's questions for positions may take
	confluentStats

	mu      sync.Mutex
	closed  bool
	waiting map[*confluentDelivery]struct{} // appended but not yet reported
	empty   chan struct{}                   // closed once the producer is closed and nothing waits

	// refused is the last authentication failure since any request succeeded. librdkafka reports
	// it only on the event channel; requests that wait for the broker just time out.
	refused atomic.Pointer[ck.Error]

	delivered chan struct{} // closed when deliveries has returned
	closeOnce sync.Once
	closeErr  error
}

// confluentDelivery is passed through the client with its record.
type confluentDelivery struct {
	topic  string
	report func(error)
}

// confluentSparse makes the client connect to brokers only when it needs them. It must be off for
// the producer, over which the admin client asks (librdkafka 2.15.1, rdkafka_broker.c). While a
// request waits for a broker that is down, it asks for a connection whenever one fails, and the
// next attempt starts at once, whatever reconnect.backoff.ms says. Thousands of attempts a
// second keep a core busy until the request gives up, and the next request does the same. The
// price is an idle connection to each broker.
const confluentSparse = "enable.sparse.connections"

func (c confluent) Producer(props map[string]string, log *slog.Logger) (kafka.Producer, error) {
	logs := c.logs(log, props)
	config := confluentConfig(props, logs)
	if _, chosen := config[confluentSparse]; !chosen {
		config[confluentSparse] = false
	}
	config["isolation.level"] = "read_uncommitted" // for the admin client's questions where logs end
	config["go.batch.producer"] = false
	config["go.delivery.report.fields"] = "none" // reports have errors in any case
	config["go.events.channel.size"] = 1024      // the default takes 16 MB
	config["go.produce.channel.size"] = 0        // unused, and large by default
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
		patience:  confluentPatience(config),
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
	// The lock is held while the client takes the record, which does not block. So nothing is
	// appended after Close has purged, and no report comes before the record is in waiting.
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

// deliveries makes the reports until the client closes its event channel.
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
			p.log.Debug("the producer reports an error", "error", confluentNamed(ev.String()), "code", int(ev.Code()))
			p.logs.login.told(ev)
			if confluentKind(ev) == kafka.ErrAuthentication {
				p.refused.Store(&ev)
			}
			if ev.Code() != ck.ErrAllBrokersDown { // other errors give the reason
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

// take makes sure that a record is reported once. It returns true for the first caller.
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

// outcome classifies the result of a request. It gives the cause of a time-out: a refused
// authentication replaces the error, and a lost connection is added to it.
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

// confluentPassing reports whether an error is of no particular kind.
func confluentPassing(err error) bool {
	var ce *confluentError
	return errors.As(err, &ce) && ce.kind == nil
}

// Purge holds the lock, so that Close cannot destroy the client meanwhile. The client's own check
// whether it is closed is not enough: it may be destroyed between the check and the purge.
func (p *confluentProducer) Purge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.purge()
	}
}

func (p *confluentProducer) purge() {
	_ = p.client.Purge(ck.PurgeQueue | ck.PurgeInFlight | ck.PurgeNonBlocking) // it fails only if the client is closed
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
		p.abandon() // reports nothing, unless the bound was hit
	})
	return p.closeErr
}

// shut drains and closes the client. It waits for the outstanding reports first, since the
// client's own Close drops them.
func (p *confluentProducer) shut() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	giveUp := time.After(confluentCloseBound / 2)
	for drained := false; !drained; {
		// Purging once is not enough: a record can move from the queue into flight between the two
		// halves of one purge.
		p.purge()
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

// abandon reports as failed all records that the client has not reported.
func (p *confluentProducer) abandon() {
	p.mu.Lock()
	left := p.waiting
	p.waiting = map[*confluentDelivery]struct{}{}
	p.mu.Unlock()
	for d := range left {
		d.report(asConfluentError("append", errClientClosed))
	}
}
