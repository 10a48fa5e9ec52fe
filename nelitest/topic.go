package nelitest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goneli/neli/kafka"
)

// topic is a name, whether or not a topic of that name exists at present. Readers and producers use the
// name, as real clients do, and do not notice when another topic has taken it over.
type topic struct {
	name     string
	exists   bool
	id       string
	replicas int
	settings map[string]string
	logs     []*partitionLog
	readers  []*fetcher
}

// partitionLog is the log of one partition, as seen by its leader.
type partitionLog struct {
	brokers   []int // the brokers that have a replica
	start     int64
	entries   []entry // of offsets start, start+1, …
	committed int     // the number of entries that all in-sync replicas have
	epoch     int     // the leader's epoch
	catchUp   event   // when the followers have the next entry
}

type entry struct {
	value  []byte
	hidden bool          // it takes an offset, but no client sees it
	epoch  int           // the epoch of the leader that appended it
	due    time.Duration // when the followers have it
	at     time.Duration // when it was committed
	by     *message      // the message that waits for the commit; nil: none
}

// end returns the leader's end, up to which only replicas read.
func (l *partitionLog) end() int64 { return l.start + int64(len(l.entries)) }

// readable returns the end for clients: the high watermark.
func (l *partitionLog) readable() int64 { return l.start + int64(l.committed) }

func (b *Broker) topic(name string) *topic {
	t := b.topics[name]
	if t == nil {
		t = &topic{name: name}
		b.topics[name] = t
	}
	return t
}

func (t *topic) has(partition int) bool {
	return t.exists && partition >= 0 && partition < len(t.logs)
}

// touch makes the readers look at the partition, to find what has changed.
func (t *topic) touch(partition int) {
	for _, f := range t.readers {
		f.notice(partition)
	}
}

func (b *Broker) create(spec kafka.TopicSpec) error {
	t := b.topic(spec.Name)
	switch {
	case t.exists:
		return fmt.Errorf("%w: %s", kafka.ErrTopicExists, spec.Name)
	case spec.Name == "" || spec.Partitions < 1:
		return fmt.Errorf("nelitest: a topic needs a name and partitions: %q, %d", spec.Name, spec.Partitions)
	case spec.Replicas > b.opts.Brokers:
		return fmt.Errorf("%w: nelitest: %d replicas on %d brokers", kafka.ErrSettings, spec.Replicas, b.opts.Brokers)
	}
	if err := b.checkPlacement(spec); err != nil {
		return err
	}
	for name, value := range spec.Settings {
		if _, err := strconv.ParseInt(value, 10, 64); err != nil && (strings.HasSuffix(name, ".ms") || strings.HasSuffix(name, ".bytes")) {
			return fmt.Errorf("%w: %s=%s is not a number", kafka.ErrSettings, name, value)
		}
	}
	if spec.ValidateOnly {
		return nil
	}
	b.topicNo++
	var id [16]byte
	rng := rand.New(rand.NewPCG(b.opts.Seed, b.topicNo))
	binary.LittleEndian.PutUint64(id[:8], rng.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rng.Uint64())
	t.exists = true
	t.id = base64.RawURLEncoding.EncodeToString(id[:])
	t.replicas = spec.Replicas
	if t.replicas < 1 {
		t.replicas = b.opts.Brokers
	}
	t.settings = map[string]string{
		"cleanup.policy":                 "delete",
		"max.message.bytes":              "1048588",
		"message.timestamp.type":         "CreateTime",
		"min.insync.replicas":            "1",
		"retention.bytes":                "-1",
		"retention.ms":                   "604800000",
		"segment.bytes":                  "1073741824",
		"segment.ms":                     "604800000",
		"unclean.leader.election.enable": "false",
	}
	maps.Copy(t.settings, spec.Settings) // checked above
	b.extend(t, spec.Partitions)
	for i, brokers := range spec.Brokers {
		t.logs[i].brokers = slices.Clone(brokers)
	}
	return nil
}

// extend gives t partitions up to n, and notifies all clients that wait for them.
func (b *Broker) extend(t *topic, n int) {
	for i := len(t.logs); i < n; i++ {
		l := &partitionLog{brokers: b.place(i, t.replicas), catchUp: event{by: "log " + t.name, rank: i}}
		l.catchUp.do = taskFunc(func() { b.commit(t, i) })
		t.logs = append(t.logs, l)
		t.touch(i)
	}
	for _, m := range b.members {
		m.recheck() // appends may wait for it
	}
	b.rebalanceTopic(t.name)
}

func unknown(topic string, partition int) error {
	return fmt.Errorf("%w: %s, partition %d", kafka.ErrUnknownTopic, topic, partition)
}

// CreateTopic creates a topic with default settings. Its id is new, and its offsets start at 0.
// Clients that already use the name, because there was such a topic or there will be one, continue with
// this one. The error wraps kafka.ErrTopicExists if the topic exists.
func (b *Broker) CreateTopic(topic string, partitions int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.create(kafka.TopicSpec{Name: topic, Partitions: partitions})
}

// DeleteTopic deletes a topic and its records. Readers get kafka.ErrUnknownTopic once. Appends wait for a
// new topic of that name until they time out.
func (b *Broker) DeleteTopic(topic string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topic(topic)
	if !t.exists {
		return unknown(topic, 0)
	}
	n := len(t.logs)
	for _, l := range t.logs {
		b.cancel(&l.catchUp)
	}
	t.exists, t.id, t.logs, t.settings = false, "", nil, nil
	for i := range n {
		t.touch(i)
	}
	for _, m := range b.members {
		m.recheck() // calls may wait for a leader
	}
	b.rebalanceTopic(topic)
	return nil
}

// AddPartitions adds n partitions to a topic, at least one. Its groups are rebalanced.
func (b *Broker) AddPartitions(topic string, n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topic(topic)
	if !t.exists {
		return unknown(topic, 0)
	}
	if n < 1 {
		return fmt.Errorf("nelitest: AddPartitions to %s: %d partitions: must be at least 1", topic, n)
	}
	b.extend(t, len(t.logs)+n)
	return nil
}

// DeleteHead deletes the records before the given offset, as retention does: the log then starts there.
// The start never moves beyond the log's end, and never back.
func (b *Broker) DeleteHead(topic string, partition int, before int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topic(topic)
	if !t.has(partition) {
		return unknown(topic, partition)
	}
	l := t.logs[partition]
	if before = min(before, l.readable()); before > l.start {
		l.entries = slices.Clone(l.entries[before-l.start:])
		l.committed -= int(before - l.start)
		l.start = before
	}
	t.touch(partition)
	return nil
}

// Truncate deletes the records from the given offset on, as an unclean leader election does: acknowledged
// records are gone, and their offsets are used again. Clients still return records that they have fetched
// already. Then a reader that has read deleted records gets kafka.ErrTruncated.
func (b *Broker) Truncate(topic string, partition int, end int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topic(topic)
	if !t.has(partition) {
		return unknown(topic, partition)
	}
	l := t.logs[partition]
	if end = max(end, l.start); end < l.end() {
		b.cut(l, int(end-l.start))
	}
	l.epoch++
	t.touch(partition)
	return nil
}

// Inject appends a record that comes from no member, for example a malformed one, and returns its offset.
// When it returns, the record and all before it in the log are committed.
func (b *Broker) Inject(topic string, partition int, value []byte) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topic(topic)
	if !t.has(partition) {
		return 0, unknown(topic, partition)
	}
	o := b.append(t, partition, entry{value: value})
	b.commitAll(t, partition)
	return o, nil
}

// Records returns the records that can be read from a partition's log now; none if it does not exist.
func (b *Broker) Records(topic string, partition int) []kafka.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topics[topic]
	if t == nil || !t.has(partition) {
		return nil
	}
	l := t.logs[partition]
	var rs []kafka.Record
	for i, e := range l.entries[:l.committed] {
		if !e.hidden {
			rs = append(rs, kafka.Record{Partition: partition, Offset: l.start + int64(i), Value: bytes.Clone(e.value), Epoch: e.epoch, Time: b.line.epoch.Add(e.at)})
		}
	}
	return rs
}
