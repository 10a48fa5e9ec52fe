package scenario

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
)

// outage is a set of partitions that are offline. An append to one fails when it times out, and
// never reaches the log. A read returns nothing new.
type outage struct {
	mu   sync.Mutex
	down map[int]bool
}

func (o *outage) set(partitions ...int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = map[int]bool{}
	for _, p := range partitions {
		o.down[p] = true
	}
}

func (o *outage) offline(p int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.down[p]
}

// config puts a member's clients behind the outage.
func (o *outage) config(cfg *neli.Config) { cfg.Provider = brittle{cfg.Provider, o} }

type brittle struct {
	kafka.Provider
	outage *outage
}

func (b brittle) Producer(props map[string]string, log *slog.Logger) (kafka.Producer, error) {
	p, err := b.Provider.Producer(props, log)
	if err != nil {
		return nil, err
	}
	return &brittleProducer{Producer: p, outage: b.outage, stop: make(chan struct{})}, nil
}

func (b brittle) Admin(p kafka.Producer) (kafka.Admin, error) {
	return b.Provider.Admin(p.(*brittleProducer).Producer)
}

type brittleProducer struct {
	kafka.Producer
	outage *outage

	mu      sync.Mutex
	stop    chan struct{} // closed by Purge
	pending sync.WaitGroup
}

var errOffline = errors.New("the partition has no leader")

// appendTimeout is the time after which an append to an offline partition fails.
const appendTimeout = 5 * time.Second

func (p *brittleProducer) Append(topic string, partition int, value []byte, report func(error)) error {
	if !p.outage.offline(partition) {
		return p.Producer.Append(topic, partition, value, report)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	stop := p.stop
	p.pending.Go(func() {
		timer := time.NewTimer(appendTimeout)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-stop:
		}
		report(errOffline)
	})
	return nil
}

func (p *brittleProducer) Purge() {
	p.mu.Lock()
	close(p.stop)
	p.stop = make(chan struct{})
	p.mu.Unlock()
	p.Producer.Purge()
}

func (p *brittleProducer) Close() error {
	p.Purge()
	p.pending.Wait()
	return p.Producer.Close()
}
