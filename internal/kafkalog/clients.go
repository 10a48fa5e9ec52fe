package kafkalog

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// Clients makes the Kafka clients of one Neli, and what elections run on. Call one of Log,
// SmallLogs and Broadcasting, once; if it fails, Undo closes the clients made so far.
type Clients struct {
	Provider   kafka.Provider
	Topic      string
	Group      string
	Partitions int           // of a topic that is created
	Apart      int           // Config.Logs: on that many brokers, one replica for each partition
	Create     bool          // a missing topic
	Observer   bool          // it writes requests only
	Lease      time.Duration // T
	Away       time.Duration // how long a member of a group that leaves it stays away
	Spread     float64       // of the pauses between retries, as a fraction
	Brokers    string        // the bootstrap servers, for messages; empty: not known
	Logger     *slog.Logger

	// Properties of each kind of client, asked for whenever one is made: their time-outs follow
	// Pace.
	Producing, Reading, Joining func() map[string]string

	Pace *Pace

	Throttling *Throttling
	Contact    *Contact
	Refusals   *Refusals
	Replaced   *atomic.Uint64 // clients that stood still

	cleanup []func()
}

// Undo closes the clients made so far.
func (w *Clients) Undo() {
	for _, f := range slices.Backward(w.cleanup) {
		f()
	}
}

// writing makes the producer, and the topic on the producer's connections.
func (w *Clients) writing() (*Topic, *lastingProducer, error) {
	producer, err := newLastingProducer(w.Provider, w.Producing, w.Pace, w.Logger)
	if err != nil {
		return nil, nil, err
	}
	w.Throttling.follow("producer", producer)
	admin := lastingAdmin{producer}
	w.cleanup = append(w.cleanup, func() {
		admin.Close()
		_ = producer.Close()
	})
	t := &Topic{name: w.Topic, Admin: admin, log: w.Logger, spread: w.Spread, suspect: make(chan struct{}, 1), lease: w.Lease, pace: w.Pace, refusals: w.Refusals,
		throttling: w.Throttling, brokers: w.Brokers, contact: w.Contact}
	if w.Create {
		t.create = &kafka.TopicSpec{Name: w.Topic, Partitions: w.Partitions}
	}
	return t, producer, nil
}

// Broadcasting returns what non-exclusive mode runs on.
func (w *Clients) Broadcasting() (*Topic, kafka.Producer, *GroupMember, error) {
	t, producer, err := w.writing()
	if err != nil {
		return nil, nil, nil, err
	}
	member, err := w.member(true, t)
	return t, producer, member, err
}

// Log returns what exclusive mode runs on, with a member of the group if the group nominates.
func (w *Clients) Log(nominated bool) (elector.Log, elector.Nominator, error) {
	t, producer, err := w.writing()
	if err != nil {
		return nil, nil, err
	}
	newReader := func() (kafka.LogReader, error) {
		r, err := w.Provider.LogReader(w.Reading(), w.Logger)
		if err == nil {
			w.Throttling.follow("reader", r)
		}
		return r, err
	}
	log := newKafkaLog(t, producer, newReader, w.Logger)
	log.lease, log.replaced = w.Lease, w.Replaced
	if w.Observer {
		log.writing.OK() // it only writes requests; without the right, only these fail
	}
	if log.reader, err = newReader(); err != nil {
		return nil, nil, err
	}
	w.cleanup = append(w.cleanup, func() { _ = log.reader.Close() })
	if !nominated {
		return topicLog{log}, nil, nil
	}
	member, err := w.member(false, t)
	if err != nil {
		return nil, nil, err
	}
	return topicLog{log}, member, nil
}

func (w *Clients) member(read bool, t *Topic) (*GroupMember, error) {
	newConsumer := func() (kafka.GroupConsumer, error) {
		c, err := w.Provider.GroupConsumer(w.Joining(), w.Logger)
		if err == nil {
			w.Throttling.follow("group", c)
		}
		return c, err
	}
	c, err := newConsumer()
	if err != nil {
		return nil, err
	}
	w.cleanup = append(w.cleanup, func() { _ = c.Close() })
	return &GroupMember{topic: w.Topic, group: w.Group, read: read, consumer: c, newConsumer: newConsumer, log: w.Logger,
		admin: t.Admin, lease: w.Lease, away: w.Away, replaced: w.Replaced, quiet: strings.EqualFold(w.Joining()["group.protocol"], "consumer"),
		joining: AccessGuard{SignedIn: &t.Access}, reading: AccessGuard{SignedIn: &t.Access}}, nil
}

// SmallLogs returns what Config.Logs runs on, and starts to look for the topic.
func (w *Clients) SmallLogs() (elector.Log, error) {
	logs, err := w.smallTopic()
	if err != nil {
		return nil, err
	}
	logs.start()
	return FromSet(logs, w.Logger, w.Contact), nil
}

// smallTopic makes the clients of Config.Logs: a producer and a reader for each log, so that a
// slow or dead broker delays only its own log.
func (w *Clients) smallTopic() (*smallTopic, error) {
	t := &Topic{name: w.Topic, log: w.Logger, spread: w.Spread, suspect: make(chan struct{}, 1), lease: w.Lease, pace: w.Pace, refusals: w.Refusals,
		throttling: w.Throttling, brokers: w.Brokers, contact: w.Contact, apart: w.Apart}
	if w.Create {
		t.create = &kafka.TopicSpec{Name: w.Topic, Partitions: w.Apart}
	}
	// A broker that has not read the ACLs yet refuses what the others grant.
	reading, writing := &AccessGuard{SignedIn: &t.Access}, &AccessGuard{SignedIn: &t.Access}
	if w.Observer {
		writing.OK() // it only writes requests; without the right, only these fail
	}
	var logs []*smallPartition
	for i := range w.Apart {
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
	l := &smallPartition{index: index, topic: t, lease: w.Lease, log: w.Logger, reading: reading, writing: writing}
	l.still, l.replaced = newStillness(1, l.lease), w.Replaced
	l.at.epoch, l.at.newest = -1, -1
	producer, err := newLastingProducer(w.Provider, w.Producing, w.Pace, w.Logger)
	if err != nil {
		return nil, err
	}
	l.producer, l.admin = producer, lastingAdmin{producer}
	w.cleanup = append(w.cleanup, func() { _ = l.close() })
	w.Throttling.follow(fmt.Sprint("producer ", index), producer)
	l.newReader = func() (kafka.LogReader, error) {
		r, err := w.Provider.LogReader(w.Reading(), w.Logger)
		if err == nil {
			w.Throttling.follow(fmt.Sprint("reader ", index), r)
		}
		return r, err
	}
	l.reader, err = l.newReader()
	return l, err
}
