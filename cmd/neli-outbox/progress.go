package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/fence"
)

// progress is a topic with a partition for each slot. The last committed record of a partition is the note of the last
// published batch.
type progress struct {
	opts         []kgo.Opt
	topic        string
	slots        int
	transactions bool          // notes are written in transactions
	within       time.Duration // how long a note may take to be read: noteTimeout if it is 0
}

func progressTopic(group string) string { return group + ".outbox" }

// noteKey is the key of all records, so that compaction keeps the last one.
var noteKey = []byte("published")

// create creates the topic unless it exists. It warns of one replica with transactions, and if Kafka deletes notes.
func (p *progress) create(ctx context.Context, log *slog.Logger) error {
	client, err := kgo.NewClient(p.opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	compact := "compact"
	_, refused := admin.CreateTopic(ctx, int32(p.slots), -1, map[string]*string{"cleanup.policy": &compact}, p.topic)
	topics, err := admin.ListTopics(ctx, p.topic) // another process may have created it
	if err == nil {
		err = topics[p.topic].Err
	}
	switch n := len(topics[p.topic].Partitions); {
	case errors.Is(err, kerr.TopicAuthorizationFailed), err != nil && errors.Is(refused, kerr.TopicAuthorizationFailed):
		return fmt.Errorf("the topic %s: %w; the principal needs CREATE, DESCRIBE, READ and WRITE on it", p.topic, kerr.TopicAuthorizationFailed)
	case err != nil && refused != nil && !errors.Is(refused, kerr.TopicAlreadyExists):
		return fmt.Errorf("creating the topic %s: %w", p.topic, refused)
	case err != nil: // made just now, and not known to all brokers yet
		return fmt.Errorf("the topic %s: %w", p.topic, err)
	case n < p.slots:
		return fmt.Errorf("%w: the topic %s has %d partitions, must have one for each of %d slots", fence.ErrPermanent, p.topic, n, p.slots)
	}
	if n := topics[p.topic].Partitions.NumReplicas(); n < 2 && p.transactions {
		log.Warn("a failure of the only replica can lose rows, or halt slots (KAFKA-20734): use three replicas, or --fence=header", "topic", p.topic, "replicas", n)
	}
	if refused != nil { // the topic existed already
		p.warnOfRetention(ctx, admin, log)
	}
	return nil
}

// warnOfRetention warns if Kafka deletes notes because of their age, or of the size of the topic. Only a warning
// depends on the answer, so errors are ignored: the principal needs no right to ask.
func (p *progress) warnOfRetention(ctx context.Context, admin *kadm.Client, log *slog.Logger) {
	all, err := admin.DescribeTopicConfigs(ctx, p.topic)
	if err != nil {
		return
	}
	topic, err := all.On(p.topic, nil)
	if err != nil || topic.Err != nil {
		return
	}
	settings := map[string]string{}
	for _, c := range topic.Configs {
		settings[c.Key] = c.MaybeValue()
	}
	policy, age, size := settings["cleanup.policy"], settings["retention.ms"], settings["retention.bytes"]
	if strings.Contains(policy, "delete") && (age != "-1" || size != "-1") {
		log.Warn("Kafka deletes notes of what was published, and then rows can be published again: set cleanup.policy=compact",
			"topic", p.topic, "cleanup.policy", policy, "retention.ms", age, "retention.bytes", size)
	}
}

// note is what a leader leaves to its successor.
type note struct {
	// rows are the rows that the last committed transaction has published, and earlier rows that may still have been in
	// the table then: a leader may end before it deletes what it published. Rows before these are deleted. With
	// --fence=header it is empty, since there no record of a batch says that the batch is whole.
	rows []ref
	position
}

// noteVersion begins each note. Notes of earlier versions, which had no names of rows, begin with another byte.
const noteVersion = 0

// record returns the record of a note.
func (p *progress) record(slot int32, n note) *kgo.Record {
	value := binary.AppendUvarint(binary.AppendUvarint([]byte{noteVersion}, uint64(n.top)), uint64(n.seen))
	var last ref
	for _, r := range slices.SortedFunc(slices.Values(n.rows), func(a, b ref) int { return cmp.Compare(a.id, b.id) }) {
		value, last = binary.AppendVarint(binary.AppendVarint(value, r.id-last.id), r.mark-last.mark), r
	}
	return &kgo.Record{Topic: p.topic, Partition: slot, Key: noteKey, Value: value}
}

// timeOf returns the time for the note of a batch: that of its last row, but no later than the database's clock. A time
// in the future may suit the row's topic, and not the topic of notes. If the client stamped the note by a wrong clock,
// brokers could refuse the note, and rows would be set aside.
func timeOf(rows []row, at position) time.Time {
	created, now := rows[len(rows)-1].created, time.UnixMicro(at.seen)
	if at.seen > 0 && created.After(now) {
		return now
	}
	return created
}

// readNote reads the value of a note. A note of an earlier version says nothing, so its rows are published again.
func readNote(value []byte) (n note, err error) {
	if len(value) == 0 || value[0] != noteVersion {
		return note{}, nil
	}
	rest := bytes.NewReader(value[1:])
	top, err := binary.ReadUvarint(rest)
	seen, err2 := binary.ReadUvarint(rest)
	n.top, n.seen, err = int64(top), int64(seen), errors.Join(err, err2)
	for last := (ref{}); err == nil && rest.Len() > 0; {
		id, err1 := binary.ReadVarint(rest)
		mark, err2 := binary.ReadVarint(rest)
		last = ref{last.id + id, last.mark + mark}
		n.rows, err = append(n.rows, last), errors.Join(err1, err2)
	}
	if err != nil {
		return note{}, fmt.Errorf("the last note of what was published is malformed: %w", err)
	}
	return n, nil
}

// errHanging says that a broker has lost the end of a transaction. Records after the beginning of
// that transaction cannot be read as committed until somebody ends it.
var errHanging = errors.New("a transaction does not end (see kafka-transactions.sh find-hanging)")

// closeToTheEnd is how many offsets before the end the search for the last committed note begins. Usually the note is the
// last entry but one, before the end of its transaction.
const closeToTheEnd = 16

// last reads the last committed note of a slot; an empty one if there is none. Call it only when no former leader's
// transaction can still commit. It takes the present end of the log, and waits until all transactions before it are
// committed or aborted.
func (p *progress) last(ctx context.Context, slot int32) (note, error) {
	client, err := kgo.NewClient(p.opts...)
	if err != nil {
		return note{}, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	start, end, err := p.bounds(ctx, admin, slot)
	if err != nil {
		return note{}, fmt.Errorf("the topic %s: %w", p.topic, err)
	}
	for back := int64(closeToTheEnd); ; back *= 16 {
		from := max(start, end-back)
		value, found, err := p.lastSince(ctx, slot, from, end)
		if err != nil {
			return note{}, fmt.Errorf("reading the topic %s: %w", p.topic, err)
		}
		if found || from == start {
			return readNote(value)
		}
	}
}

func (p *progress) bounds(ctx context.Context, admin *kadm.Client, slot int32) (start, end int64, err error) {
	starts, err := admin.ListStartOffsets(ctx, p.topic)
	if err != nil {
		return 0, 0, err
	}
	ends, err := admin.ListEndOffsets(ctx, p.topic) // with isolation level read_uncommitted
	if err != nil {
		return 0, 0, err
	}
	first, known := starts.Lookup(p.topic, slot)
	last, known2 := ends.Lookup(p.topic, slot)
	if !known || !known2 {
		return 0, 0, fmt.Errorf("%w: partition %d", kerr.UnknownTopicOrPartition, slot)
	}
	return first.Offset, last.Offset, errors.Join(first.Err, last.Err)
}

// noteTimeout is how long committed notes may take to be read. It is longer than a transaction
// may take, after which the coordinator aborts it.
const noteTimeout = 30 * time.Second

// lastSince reads committed records from offset from to end or beyond, and returns the last one's value.
func (p *progress) lastSince(ctx context.Context, slot int32, from, end int64) (value []byte, found bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(p.within, noteTimeout), fmt.Errorf("%w: before offset %d of partition %d", errHanging, end, slot))
	defer cancel()
	client, err := kgo.NewClient(slices.Concat(p.opts, []kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.KeepControlRecords(), // so that the position is known
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{p.topic: {slot: kgo.NewOffset().At(from)}}),
	})...)
	if err != nil {
		return nil, false, err
	}
	defer client.Close()
	for position := from; position < end; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, false, errors.Join(context.Cause(ctx), err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if position = r.Offset + 1; !r.Attrs.IsControl() {
				value, found = r.Value, true
			}
		})
	}
	return value, found, nil
}

// begin reads the last note of a slot at the beginning of a term. If somebody has deleted the topic, it creates the topic again.
func (p *progress) begin(ctx context.Context, slot int, log *slog.Logger) (note, error) {
	last, err := p.last(ctx, int32(slot))
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		p.createAgain(ctx, log)
	}
	if err == nil {
		return last, nil
	}
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return note{}, fmt.Errorf("%w; the principal needs DESCRIBE and READ on the topic", err)
	}
	log.Warn("cannot read what was published last, retrying", "error", err)
	return note{}, fmt.Errorf("%w: %w", fence.ErrRefused, err)
}

// createAgain creates the topic of notes, which somebody has deleted. If the topic exists and only a broker does not
// know it yet, nothing happens. An error here does not end the relay, because the topic may exist, and this principal
// may have no right to create it.
func (p *progress) createAgain(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if err := p.create(ctx, log); err != nil {
		log.Warn("cannot create the topic of notes again", "error", err)
	}
}
