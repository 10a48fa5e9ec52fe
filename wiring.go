package neli

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/confluent"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/freeze"
	"github.com/goneli/neli/internal/redact"
	"github.com/goneli/neli/kafka"
)

// Confluent returns the default Provider, on confluent-kafka-go, which is librdkafka, for
// those who wrap it; leaving Config.Provider empty means the same. The error says what to do in
// a binary without it: one that was built without cgo, or with the tag neli_nolibrdkafka.
func Confluent() (kafka.Provider, error) { return confluent.New() }

// newArbiter makes the Kafka clients and puts the parts together.
func newArbiter(p kafka.Provider, set *settings, clocks clock.Clock, alive func(clock.Instant) bool) (arbiter, error) {
	if f, can := p.(freeze.Freezer); can {
		set.frozen = f.Frozen()
	}
	if p, small := p.(kafka.SmallLogs); small {
		return newSmallArbiter(p, set, clocks, alive)
	}
	if p == nil {
		var err error
		if p, err = Confluent(); err != nil {
			return nil, fmt.Errorf("neli: New: %w", err)
		}
	}
	w := wiring{provider: p, set: set}
	build := w.arbiter
	if set.logs > 0 {
		build = w.majority
	}
	arb, err := build(clocks, alive)
	if err != nil {
		w.undo()
		return nil, fmt.Errorf("neli: New: the Kafka client refuses its configuration: %w", err)
	}
	return arb, nil
}

type wiring struct {
	provider kafka.Provider
	set      *settings
	cleanup  []func()
}

func (w *wiring) undo() {
	for _, f := range slices.Backward(w.cleanup) {
		f()
	}
}

func (w *wiring) arbiter(clocks clock.Clock, alive func(clock.Instant) bool) (arbiter, error) {
	t, producer, err := w.topic()
	if err != nil {
		return nil, err
	}
	if w.set.mode == NonExclusive {
		member, err := w.member(true, t)
		if err != nil {
			return nil, err
		}
		return newVectorArbiter(w.set, t, producer, member, clocks.Glance, alive), nil
	}
	log, err := w.log(t, producer)
	if err != nil {
		return nil, err
	}
	var nom elector.Nominator
	if w.set.nomination == Assigned && !w.set.observer {
		if nom, err = w.member(false, t); err != nil {
			return nil, err
		}
	}
	return newExclusive(w.set, log, nom, clocks, alive), nil
}

// topic makes the producer, and the leader topic as an administrator sees it.
func (w *wiring) topic() (*topic, kafka.Producer, error) {
	producer, err := newLastingProducer(w.provider, w.set.producerProperties(), w.set.logger)
	if err != nil {
		return nil, nil, err
	}
	w.set.throttling.follow("producer", producer)
	admin := lastingAdmin{producer}
	w.cleanup = append(w.cleanup, func() {
		admin.Close()
		_ = producer.Close()
	})
	t := &topic{name: w.set.topic, admin: admin, log: w.set.logger, spread: w.set.spread, suspect: make(chan struct{}, 1),
		throttling: &w.set.throttling, brokers: w.set.brokers(), contact: &w.set.contact}
	if w.set.createTopic {
		t.create = &kafka.TopicSpec{Name: w.set.topic, Partitions: w.set.partitions}
	}
	return t, producer, nil
}

// log makes the elector's log in the leader topic.
func (w *wiring) log(t *topic, producer kafka.Producer) (elector.Log, error) {
	newReader := func() (kafka.LogReader, error) {
		r, err := w.provider.LogReader(w.set.readerProperties(), w.set.logger)
		if err == nil {
			w.set.throttling.follow("reader", r)
		}
		return r, err
	}
	log := newKafkaLog(t, producer, newReader, w.set.logger)
	log.lease, log.replaced = w.set.timeout, &w.set.replaced
	if w.set.observer {
		log.writing.ok() // it writes requests only: where it may not, they fail and nothing else does
	}
	var err error
	if log.reader, err = newReader(); err != nil {
		return nil, err
	}
	w.cleanup = append(w.cleanup, func() { _ = log.reader.Close() })
	return topicLog{log}, nil
}

// majority is arbiter for Config.Logs.
func (w *wiring) majority(clocks clock.Clock, alive func(clock.Instant) bool) (arbiter, error) {
	log, err := w.smallLogs()
	if err != nil {
		return nil, err
	}
	return newExclusive(w.set, log, nil, clocks, alive), nil
}

// smallLogs makes the elector's logs for Config.Logs.
func (w *wiring) smallLogs() (elector.Log, error) {
	logs, err := w.smallTopic()
	if err != nil {
		return nil, err
	}
	logs.start()
	return &smallLog{set: logs, log: w.set.logger, contact: &w.set.contact}, nil
}

// openLog makes what only reads and writes the logs, for who takes no part in the election.
func openLog(p kafka.Provider, set *settings) (elector.Log, error) {
	if p, small := p.(kafka.SmallLogs); small {
		return openSmallLogs(p, set)
	}
	if p == nil {
		var err error
		if p, err = Confluent(); err != nil {
			return nil, err
		}
	}
	w := wiring{provider: p, set: set}
	if set.logs > 0 {
		log, err := w.smallLogs()
		return log, w.settle(err)
	}
	t, producer, err := w.topic()
	if err != nil {
		return nil, w.settle(err)
	}
	log, err := w.log(t, producer)
	return log, w.settle(err)
}

// settle undoes what was made if there is an error, which it returns.
func (w *wiring) settle(err error) error {
	if err != nil {
		w.undo()
	}
	return err
}

func (w *wiring) member(read bool, t *topic) (*groupMember, error) {
	newConsumer := func() (kafka.GroupConsumer, error) {
		c, err := w.provider.GroupConsumer(w.set.groupProperties(), w.set.logger)
		if err == nil {
			w.set.throttling.follow("group", c)
		}
		return c, err
	}
	c, err := newConsumer()
	if err != nil {
		return nil, err
	}
	w.cleanup = append(w.cleanup, func() { _ = c.Close() })
	return &groupMember{topic: w.set.topic, group: w.set.group, read: read, consumer: c, newConsumer: newConsumer, log: w.set.logger,
		admin: t.admin, lease: w.set.timeout, replaced: &w.set.replaced,
		joining: accessGuard{signedIn: &t.access}, reading: accessGuard{signedIn: &t.access}}, nil
}

// newID returns an identifier that has never been seen before: 130 random bits.
func newID() string { return rand.Text() }

// announce logs the effective settings in one line, without secrets.
func (s *settings) announce() {
	args := []any{"topic", s.topic, "mode", s.mode.String()}
	brokerless := s.small && s.logs == 0
	switch {
	case brokerless:
		args = []any{"logs", "small", "mode", s.mode.String()}
	case s.small:
		args = append(args, "logs", s.logs)
	}
	if s.mode == Exclusive {
		args = append(args, "nomination", s.nomination.String(), "drainTimeout", s.drain,
			"maxClockDrift", s.drift, "silence", s.silence(), "observer", s.observer, "tokenBase", s.tokenBase)
	}
	args = append(args, "roles", s.roles, "heartbeatTimeout", s.timeout, "heartbeatInterval", s.broadcast,
		"maxPulseInterval", s.maxPulse)
	if brokerless {
		s.logger.Info("starting", args...)
		return
	}
	shown := redact.Properties(s.kafka)
	props := make([]any, 0, len(shown))
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		props = append(props, slog.String(name, shown[name]))
	}
	s.logger.Info("starting", append(args, slog.Group("kafka", props...))...)
}
