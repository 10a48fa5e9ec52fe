package kafkalog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/goneli/neli/kafka"
)

// lastingProducer is a Producer that survives its client. It replaces a client that has failed
// permanently (ErrClientFatal, such as an idempotent producer whose sequence is broken), and one
// that gets no records acknowledged or no questions answered for some time (barren), together with
// the admin client on its connections. Unacknowledged records of the old client are reported as
// failed.
//
// During a replacement, and while no new client can be made, calls may fail; their callers retry.
type lastingProducer struct {
	make func() (kafka.Producer, kafka.Admin, error)
	log  *slog.Logger
	pace *Pace

	ctx     context.Context // done when closed
	stop    context.CancelFunc
	working sync.WaitGroup // the replacement in progress
	trouble Limiter
	barren  barren // of records
	mute    barren // of questions: a process that appends nothing still asks

	mu        sync.Mutex // guards the fields below; not held during calls of a client
	producer  kafka.Producer
	admin     kafka.Admin
	waited    time.Duration // how long brokers made former clients wait
	replacing bool
	closed    bool
}

// replaceEvery is the least time between two replacements, so that a client that fails at once
// does not cause a loop that fills the log and the broker's tables.
const replaceEvery = time.Second

// spaced keeps the replacements of a client at least replaceEvery apart.
type spaced struct{ last time.Time }

// wait returns when another client may be made, or with an error once ctx is done.
func (s *spaced) wait(ctx context.Context) error {
	pause(ctx, replaceEvery-time.Since(s.last))
	s.last = time.Now()
	return ctx.Err()
}

func newLastingProducer(p kafka.Provider, props func() map[string]string, pace *Pace, log *slog.Logger) (*lastingProducer, error) {
	l := &lastingProducer{log: log, pace: pace, barren: barren{patience: barrenAfter}, mute: barren{patience: barrenAfter}, make: func() (kafka.Producer, kafka.Admin, error) {
		producer, err := p.Producer(props(), log)
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
	handed := time.Now()
	err := p.Append(topic, partition, value, func(err error) {
		switch {
		case err == nil:
			now := time.Now()
			l.pace.Note(now.Sub(handed), now)
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

// failed starts the replacement of a client that failed permanently or is barren, unless it is in
// progress already. It uses its own goroutine, since closing a client waits for reports.
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

// shut ends replacement, and returns the current clients.
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

// lastingAdmin is an Admin on the current client of its producer. A replacement makes calls in progress fail.
type lastingAdmin struct{ of *lastingProducer }

// ask puts a question, and starts the replacement of a producer that gets no answers. An error after
// the context was cancelled counts for nothing.
func ask[A any](ctx context.Context, of *lastingProducer, question func(kafka.Admin) (A, error)) (A, error) {
	p, admin := of.current()
	began := time.Now()
	answer, err := question(admin)
	switch {
	case err == nil:
		now := time.Now()
		of.pace.Note(now.Sub(began), now)
		of.mute.acknowledged()
	case errors.Is(ctx.Err(), context.Canceled):
	case of.mute.failed(err, time.Now()):
		of.failed(p, errors.Join(errBarren, err))
	}
	return answer, err
}

func (a lastingAdmin) Brokers(ctx context.Context, racks bool) ([]kafka.BrokerInfo, error) {
	return ask(ctx, a.of, func(admin kafka.Admin) ([]kafka.BrokerInfo, error) { return admin.Brokers(ctx, racks) })
}

func (a lastingAdmin) Topic(ctx context.Context, topic string) (kafka.TopicInfo, error) {
	return ask(ctx, a.of, func(admin kafka.Admin) (kafka.TopicInfo, error) { return admin.Topic(ctx, topic) })
}

func (a lastingAdmin) CreateTopic(ctx context.Context, spec kafka.TopicSpec) error {
	_, err := ask(ctx, a.of, func(admin kafka.Admin) (struct{}, error) { return struct{}{}, admin.CreateTopic(ctx, spec) })
	return err
}

func (a lastingAdmin) Settings(ctx context.Context, topic string) (map[string]string, error) {
	return ask(ctx, a.of, func(admin kafka.Admin) (map[string]string, error) { return admin.Settings(ctx, topic) })
}

func (a lastingAdmin) Offsets(ctx context.Context, topic string, n int) ([]kafka.OffsetRange, error) {
	return ask(ctx, a.of, func(admin kafka.Admin) ([]kafka.OffsetRange, error) { return admin.Offsets(ctx, topic, n) })
}

func (a lastingAdmin) Log(ctx context.Context, topic string, partition int) (kafka.LogInfo, error) {
	return ask(ctx, a.of, func(admin kafka.Admin) (kafka.LogInfo, error) { return admin.Log(ctx, topic, partition) })
}

// KeepsEpochs implements kafka.EpochKeeper. It returns false if the admin client does not implement that.
func (a lastingAdmin) KeepsEpochs(ctx context.Context) (bool, error) {
	return ask(ctx, a.of, func(admin kafka.Admin) (bool, error) {
		if k, can := admin.(kafka.EpochKeeper); can {
			return k.KeepsEpochs(ctx)
		}
		return false, nil
	})
}

// Close must be called before the producer's Close.
func (a lastingAdmin) Close() {
	_, admin := a.of.shut()
	admin.Close()
}
