package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/fence"
)

// term is one term of the leader of a slot.
type term struct {
	fence.Term
	slot  int
	token int64
}

// publisher writes the rows of a term to Kafka, so that a former leader can do no harm.
type publisher interface {
	// term calls work with a writer. Whenever Kafka refuses a writer during the term, term calls work with another one.
	// last is the last note of the slot. Its rows were published by an earlier writer, and perhaps not deleted.
	term(ctx context.Context, now term, work func(ctx context.Context, w writer, last note) error) error
	// setAside records why a row cannot be published. Its key waits until a person corrects or deletes the row.
	setAside(ctx context.Context, now term, bad ref, why string) error
}

// writer writes the rows of a term. publish and next may be called at the same time, but neither twice at once.
type writer interface {
	// next deletes rows that were published, and returns the next ones, without those that are under way to Kafka.
	next(ctx context.Context, published, underway []ref, most limits) (look, error)
	// first returns the name of the first row that next would return.
	first(ctx context.Context, published, underway []ref) (ref, error)
	// publish returns nil when the rows are published, and *refusal if some cannot be. After any other error it is
	// unknown whether they are published, and the writer must not be used again. published are rows that were
	// published before and may still be in the table. at is how far the slot has been read, for the note.
	publish(ctx context.Context, rows []row, published []ref, at position) error
}

// refusal says that Kafka does not accept one of these rows, whoever writes it. If they were in a transaction, none of them
// was published.
type refusal struct {
	rows []row
	more bool // the note also named earlier rows, and may itself have been too large
	why  error
}

func (r *refusal) Error() string {
	return fmt.Sprintf("a row of %d cannot be published: %v", len(r.rows), r.why)
}

func (r *refusal) Unwrap() error { return r.why }

// unfit lists the errors that a row itself causes: by its size, its topic, or its time. The lack of the right to write
// to a topic is among them, since brokers that check rights answer the same for a topic that does not exist.
// PolicyViolation is not one of them: brokers answer it to requests that create or change topics, and other rows would
// be refused as well.
var unfit = []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.UnknownTopicOrPartition, kerr.InvalidTopicException, kerr.InvalidTimestamp, kerr.TopicAuthorizationFailed}

func isUnfit(err error) bool {
	for _, kind := range unfit {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// topicName matches what Kafka accepts as the name of a topic.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// faultOf returns why a row cannot be published, as far as that is known without Kafka. A text that is not the name of
// a topic could be longer than a request may be. A topic of the relays themselves is refused: a row there could
// overwrite what a slot has noted, so that rows of that slot would count as published, or it could disturb the log of
// the election.
func faultOf(r row, group string) error {
	switch {
	case r.fault != nil:
		return r.fault
	case !topicName.MatchString(r.topic) || r.topic == "." || r.topic == "..":
		return fmt.Errorf("%w: %.100q must have 1 to 249 letters, digits, dots, hyphens and underscores", kerr.InvalidTopicException, r.topic)
	case r.topic == progressTopic(group) || r.topic == group+".neli":
		return fmt.Errorf("%w: %s is a topic of the relays themselves", kerr.InvalidTopicException, r.topic)
	}
	return nil
}

// mostReason limits the length of the reason why a row cannot be published, as it is stored and logged.
const mostReason = 500

// brief shortens the text of an error to what the database and the log take, since a message may have parts of a row.
func brief(err error) string {
	text := strings.ReplaceAll(err.Error(), "\x00", "")
	if len(text) > mostReason {
		text = text[:mostReason] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}

// idHeader is the name of the record header with a row's id. For one key, ids increase.
const idHeader = "outbox-id"

// recordOf returns the record of a row. It leaves out the row's own headers with names that the relay uses. A service
// may have copied them from a record that another relay has published, and readers would take them for this relay's.
func recordOf(r row, more ...kgo.RecordHeader) *kgo.Record {
	own := append([]kgo.RecordHeader{{Key: idHeader, Value: strconv.AppendInt(nil, r.id, 10)}}, more...)
	headers := make([]kgo.RecordHeader, 0, len(r.headers)+len(own))
	for _, h := range r.headers {
		if !slices.ContainsFunc(own, func(o kgo.RecordHeader) bool { return o.Key == h.name }) {
			headers = append(headers, kgo.RecordHeader{Key: h.name, Value: []byte(h.value)})
		}
	}
	headers = append(headers, own...)
	return &kgo.Record{Topic: r.topic, Key: []byte(r.key), Value: r.payload, Headers: headers, Timestamp: r.created}
}

// byKey chooses a record's partition by its key as Java's clients do, except for one topic, whose records have their
// partition set.
type byKey struct{ except string }

func (b byKey) ForTopic(topic string) kgo.TopicPartitioner {
	if topic == b.except {
		return kgo.ManualPartitioner().ForTopic(topic)
	}
	return kgo.StickyKeyPartitioner(nil).ForTopic(topic)
}

// again converts an attempt's result for backoff.Retry.
func again(err error, retry bool) error {
	if err == nil || retry {
		return err
	}
	return backoff.Permanent(err)
}

// patiently retries while the context lasts, after pauses of about 50 ms to 2 s.
func patiently(more ...backoff.RetryOption) []backoff.RetryOption {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 50*time.Millisecond, 2*time.Second
	return append(more, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0))
}
