package kafkalog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/goneli/neli/kafka"
)

// lastingProducer is a Producer that outlives its client: one that has failed for
// good (ErrClientFatal: an idempotent producer whose sequence is broken, for
// example) is replaced by a new one, together with the admin client over its
// connections. So is one that gets nothing acknowledged, or no question of the admin client
// answered, for some time (barren). What the
// old one had not got acknowledged is reported as failed.
//
// In between, and while no new client can be made, Append fails and admin calls
// do; both are tried again by whoever makes them.
type lastingProducer struct {
	make func() (kafka.Producer, kafka.Admin, error)
	log  *slog.Logger

	ctx     context.Context // done when closed
	stop    context.CancelFunc
	working sync.WaitGroup // the replacement under way
	trouble Limiter
	barren  barren // of records
	mute    barren // of questions: a process that appends nothing asks nevertheless

	mu        sync.Mutex // guards what follows; not held while a client works
	producer  kafka.Producer
	admin     kafka.Admin
	waited    time.Duration // of former clients: how long brokers made them wait
	replacing bool
	closed    bool
}

// replaceEvery is the least time between two replacements: a new client that fails
// at once must not become a loop that fills the log and the broker's tables.
const replaceEvery = time.Second

func newLastingProducer(p kafka.Provider, props map[string]string, log *slog.Logger) (*lastingProducer, error) {
	l := &lastingProducer{log: log, barren: barren{patience: barrenAfter}, mute: barren{patience: barrenAfter}, make: func() (kafka.Producer, kafka.Admin, error) {
		producer, err := p.Producer(props, log)
		if err != nil {
			return nil, nil, err
		}
		admin, err := p.Admin(producer)
		if err != nil {
			_ = producer.Close()
			return nil, nil, err
		}
		return producer, admin, nil
	}}
	var err error
	if l.producer, l.admin, err = l.make(); err != nil {
		return nil, err
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l, nil
}

func (l *lastingProducer) current() (kafka.Producer, kafka.Admin) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producer, l.admin
}

func (l *lastingProducer) Append(topic string, partition int, value []byte, report func(error)) error {
	p, _ := l.current()
	err := p.Append(topic, partition, value, func(err error) {
		switch {
		case err == nil:
			l.barren.acknowledged()
		case errors.Is(err, kafka.ErrClientFatal):
			l.failed(p, err)
		case l.barren.failed(err, time.Now()):
			l.failed(p, errors.Join(errBarren, err))
		}
		report(err)
	})
	if errors.Is(err, kafka.ErrClientFatal) {
		l.failed(p, err)
	}
	return err
}

// failed has the client replaced that failed for good or is barren, unless that is done
// already, on a goroutine of its own: closing a client waits for its reports.
func (l *lastingProducer) failed(p kafka.Producer, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p != l.producer || l.replacing || l.closed {
		return
	}
	l.replacing = true
	l.working.Go(func() { l.replace(why) })
}

func (l *lastingProducer) replace(why error) {
	switch {
	case !l.trouble.Due():
	case errors.Is(why, errBarren):
		l.log.Warn("nothing was acknowledged or answered for some time: replacing the producer", "error", why)
	default:
		l.log.Warn("the producer has failed for good: replacing it", "error", why)
	}
	for {
		producer, admin, err := l.make()
		if err == nil {
			l.mu.Lock()
			oldProducer, oldAdmin := l.producer, l.admin
			l.producer, l.admin = producer, admin
			l.waited += oldProducer.Throttled()
			l.mu.Unlock()
			l.barren.restart()
			l.mute.restart()
			oldAdmin.Close()
			_ = oldProducer.Close()
			break
		}
		if l.trouble.Due() {
			l.log.Warn("cannot replace the producer, retrying", "error", err)
		}
		if !pause(l.ctx, replaceEvery) {
			return
		}
	}
	pause(l.ctx, replaceEvery)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replacing = false
}

func (l *lastingProducer) Purge() {
	p, _ := l.current()
	p.Purge()
}

func (l *lastingProducer) Throttled() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waited + l.producer.Throttled()
}

// shut ends replacement. What there is then stays.
func (l *lastingProducer) shut() (kafka.Producer, kafka.Admin) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.working.Wait()
	return l.current()
}

func (l *lastingProducer) Close() error {
	p, _ := l.shut()
	return p.Close()
}

// lastingAdmin is an Admin over whatever client its producer has at the time. A
// call that is under way when that is replaced fails.
type lastingAdmin struct{ of *lastingProducer }

// ask asks, and has the producer replaced that gets no answers. A context that was cancelled
// says nothing.
func (a lastingAdmin) ask(ctx context.Context, question func(kafka.Admin) error) error {
	p, admin := a.of.current()
	err := question(admin)
	switch {
	case err == nil:
		a.of.mute.acknowledged()
	case errors.Is(ctx.Err(), context.Canceled):
	case a.of.mute.failed(err, time.Now()):
		a.of.failed(p, errors.Join(errBarren, err))
	}
	return err
}

func (a lastingAdmin) Brokers(ctx context.Context, racks bool) (brokers []kafka.BrokerInfo, err error) {
	err = a.ask(ctx, func(admin kafka.Admin) (err error) {
		brokers, err = admin.Brokers(ctx, racks)
		return err
	})
	return brokers, err
}

func (a lastingAdmin) Topic(ctx context.Context, topic string) (info kafka.TopicInfo, err error) {
	err = a.ask(ctx, func(admin kafka.Admin) (err error) {
		info, err = admin.Topic(ctx, topic)
		return err
	})
	return info, err
}

func (a lastingAdmin) CreateTopic(ctx context.Context, spec kafka.TopicSpec) error {
	return a.ask(ctx, func(admin kafka.Admin) error { return admin.CreateTopic(ctx, spec) })
}

func (a lastingAdmin) Settings(ctx context.Context, topic string) (settings map[string]string, err error) {
	err = a.ask(ctx, func(admin kafka.Admin) (err error) {
		settings, err = admin.Settings(ctx, topic)
		return err
	})
	return settings, err
}

func (a lastingAdmin) Offsets(ctx context.Context, topic string, n int) (ranges []kafka.OffsetRange, err error) {
	err = a.ask(ctx, func(admin kafka.Admin) (err error) {
		ranges, err = admin.Offsets(ctx, topic, n)
		return err
	})
	return ranges, err
}

func (a lastingAdmin) Log(ctx context.Context, topic string, partition int) (info kafka.LogInfo, err error) {
	err = a.ask(ctx, func(admin kafka.Admin) (err error) {
		info, err = admin.Log(ctx, topic, partition)
		return err
	})
	return info, err
}

// Close is to be called before the producer's.
func (a lastingAdmin) Close() {
	_, admin := a.of.shut()
	admin.Close()
}
