package kafkalog

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// Clients makes the Kafka clients of one Neli, and what elections run on. Call Open once.
type Clients struct {
	Provider   kafka.Provider
	Topic      string
	Group      string
	Partitions int           // of a topic that is created
	Logs       int           // Config.Logs: the number of partitions, each on one broker of its own
	Create     bool          // create a missing topic
	Broadcasts bool          // non-exclusive mode
	Nominated  bool          // exclusive mode: the group nominates
	Observer   bool          // it writes requests only
	T          time.Duration // HeartbeatTimeout
	Absence    time.Duration // how long a member stays out of its group after access to the topic was refused
	Spread     float64       // of the pauses between retries, as a fraction
	Brokers    string        // the bootstrap servers, for messages; empty: not known
	Logger     *slog.Logger

	// Properties of each kind of client, asked for whenever one is made: their time-outs follow Health.Pace.
	Producing, Reading, Joining func() map[string]string

	Health *Health

	cleanup []func()
}

// Opened is what an election runs on: in exclusive mode Log and Nominator, in non-exclusive mode the rest.
type Opened struct {
	Log       elector.Log
	Nominator elector.Nominator // nil: any process may claim

	Topic    *Topic
	Producer kafka.Producer
	Member   *GroupMember
}

// Open makes the clients. If it fails, none is left.
func (w *Clients) Open() (o Opened, err error) {
	switch {
	case w.Broadcasts:
		o.Topic, o.Producer, o.Member, err = w.broadcasting()
	case w.Logs > 0:
		o.Log, err = w.smallLogs()
	default:
		o.Log, o.Nominator, err = w.log()
	}
	if err != nil {
		for _, f := range slices.Backward(w.cleanup) {
			f()
		}
		return Opened{}, fmt.Errorf("the Kafka client refuses its configuration: %w", err)
	}
	return o, nil
}

// topic returns the topic, without its admin client.
func (w *Clients) topic(partitions int) *Topic {
	t := &Topic{name: w.Topic, log: w.Logger, spread: w.Spread, suspect: make(chan struct{}, 1), T: w.T, health: w.Health, brokers: w.Brokers, logs: w.Logs}
	if w.Create {
		t.create = &kafka.TopicSpec{Name: w.Topic, Partitions: partitions}
	}
	return t
}

// writing makes the producer, and the topic on the producer's connections.
func (w *Clients) writing() (*Topic, *lastingProducer, error) {
	producer, err := newLastingProducer(w.Provider, w.Producing, &w.Health.Pace, w.Logger)
	if err != nil {
		return nil, nil, err
	}
	w.Health.Throttling.follow("producer", producer)
	admin := lastingAdmin{producer}
	w.cleanup = append(w.cleanup, func() {
		admin.Close()
		_ = producer.Close()
	})
	t := w.topic(w.Partitions)
	t.Admin = admin
	return t, producer, nil
}

// broadcasting returns what non-exclusive mode runs on.
func (w *Clients) broadcasting() (*Topic, kafka.Producer, *GroupMember, error) {
	t, producer, err := w.writing()
	if err != nil {
		return nil, nil, nil, err
	}
	member, err := w.member(true, t)
	return t, producer, member, err
}

// log returns what exclusive mode runs on, with a member of the group if the group nominates.
func (w *Clients) log() (elector.Log, elector.Nominator, error) {
	t, producer, err := w.writing()
	if err != nil {
		return nil, nil, err
	}
	var nom elector.Nominator
	if w.Nominated {
		if nom, err = w.member(false, t); err != nil {
			return nil, nil, err
		}
	}
	newReader := func() (kafka.LogReader, error) {
		r, err := w.Provider.LogReader(w.Reading(), w.Logger)
		if err == nil {
			w.Health.Throttling.follow("reader", r)
		}
		return r, err
	}
	reader, err := newReader()
	if err != nil {
		return nil, nil, err
	}
	w.cleanup = append(w.cleanup, func() { _ = reader.Close() })
	log := newKafkaLog(t, producer, newReader, w.Logger)
	log.T, log.replaced, log.reader = w.T, &w.Health.Replaced, reader
	if w.Observer {
		log.writing.OK() // it only writes requests; without the right, only these fail
	}
	return topicLog{log}, nom, nil
}

func (w *Clients) member(read bool, t *Topic) (*GroupMember, error) {
	newConsumer := func() (kafka.GroupConsumer, error) {
		c, err := w.Provider.GroupConsumer(w.Joining(), w.Logger)
		if err == nil {
			w.Health.Throttling.follow("group", c)
		}
		return c, err
	}
	c, err := newConsumer()
	if err != nil {
		return nil, err
	}
	w.cleanup = append(w.cleanup, func() { _ = c.Close() })
	return &GroupMember{topic: w.Topic, group: w.Group, read: read, consumer: c, newConsumer: newConsumer, log: w.Logger,
		admin: t.Admin, T: w.T, absence: w.Absence, replaced: &w.Health.Replaced, quiet: strings.EqualFold(w.Joining()["group.protocol"], "consumer"),
		joining: AccessGuard{SignedIn: &t.Access}, reading: AccessGuard{SignedIn: &t.Access}}, nil
}

// smallLogs returns what Config.Logs runs on, and starts to look for the topic.
func (w *Clients) smallLogs() (elector.Log, error) {
	logs, err := w.smallTopic()
	if err != nil {
		return nil, err
	}
	logs.start()
	return FromSet(logs, w.Logger, &w.Health.Contact), nil
}

// smallTopic makes the clients of Config.Logs: a producer and a reader for each log, so that a
// slow or dead broker delays only its own log.
func (w *Clients) smallTopic() (*smallTopic, error) {
	t := w.topic(w.Logs)
	// A broker that has not read the ACLs yet refuses rights that the others grant.
	reading, writing := &AccessGuard{SignedIn: &t.Access}, &AccessGuard{SignedIn: &t.Access}
	if w.Observer {
		writing.OK() // it only writes requests; without the right, only these fail
	}
	var logs []*smallPartition
	for i := range w.Logs {
		l, err := w.smallPartition(t, i, reading, writing)
		if err != nil {
			return nil, err
		}
		logs = append(logs, l)
	}
	t.Admin = logs[0].admin // any of them: it asks whichever broker answers
	return newSmallTopic(t, logs), nil
}

func (w *Clients) smallPartition(t *Topic, index int, reading, writing *AccessGuard) (*smallPartition, error) {
	l := &smallPartition{index: index, topic: t, T: w.T, log: w.Logger, reading: reading, writing: writing}
	l.still, l.replaced = newStillness(1, l.T), &w.Health.Replaced
	l.at.epoch, l.at.newest = -1, -1
	producer, err := newLastingProducer(w.Provider, w.Producing, &w.Health.Pace, w.Logger)
	if err != nil {
		return nil, err
	}
	l.producer, l.admin = producer, lastingAdmin{producer}
	w.cleanup = append(w.cleanup, func() { _ = l.close() })
	w.Health.Throttling.follow(fmt.Sprint("producer ", index), producer)
	l.newReader = func() (kafka.LogReader, error) {
		r, err := w.Provider.LogReader(w.Reading(), w.Logger)
		if err == nil {
			w.Health.Throttling.follow(fmt.Sprint("reader ", index), r)
		}
		return r, err
	}
	l.reader, err = l.newReader()
	return l, err
}
