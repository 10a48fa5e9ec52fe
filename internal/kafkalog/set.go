package kafkalog

import (
	"context"
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// This file adapts a set of small logs to the elector. They come from a Provider, or are partitions
// with one replica each (small.go). Package internal/quorum has the rules, docs/design.md the
// picture.

// smallLog is a LogSet as the elector expects it.
type smallLog struct {
	set     kafka.LogSet
	log     *slog.Logger
	contact *Contact
	odd     Limiter
}

// FromSet adapts a LogSet to the elector. c records whether any log has answered.
func FromSet(set kafka.LogSet, log *slog.Logger, c *Contact) elector.Log {
	return &smallLog{set: set, log: log, contact: c}
}

func (l *smallLog) Open(context.Context) (int, string, error) { return l.set.Logs(), "", nil }

// Identity waits for the identity of opened small logs: the id of their topic, or the identity that
// a Provider's own logs report. It is empty if they report none, if the topic cannot be found, or
// if ctx ends.
func Identity(ctx context.Context, log elector.Log) string {
	if l, small := log.(*smallLog); small {
		if v, ok := l.set.(kafka.Identified); ok {
			return v.Identity(ctx)
		}
	}
	return ""
}

// Lists returns the lists of small logs while the list changes, as in kafka.Joint, and otherwise nil.
func Lists(log elector.Log) [][]int {
	if l, small := log.(*smallLog); small {
		if v, ok := l.set.(kafka.Joint); ok {
			return v.Lists()
		}
	}
	return nil
}

func (l *smallLog) Next(ctx context.Context, timeout time.Duration) (elector.Entry, bool, error) {
	e, ok, err := l.set.Next(ctx, timeout)
	if !ok || err != nil {
		return elector.Entry{}, false, err
	}
	l.contact.note(true)
	sound := e.Log >= 0 && e.Log < l.set.Logs() && e.ID != "" && e.Offset >= 0 && e.Top >= 0
	out := elector.Entry{Partition: e.Log, ID: e.ID, Offset: e.Offset, Value: e.Value}
	switch e.Kind {
	case kafka.LogReset:
		sound = sound && e.Offset <= e.End
		out.Reset, out.End, out.Top = true, e.End, e.Top
	case kafka.LogRecord:
	case kafka.LogAlive:
		out.Alive = true
	default:
		sound = false
	}
	if !sound {
		if l.odd.Due() {
			l.log.Warn("skipping what a small log cannot have said", "log", e.Log, "id", e.ID, "offset", e.Offset, "end", e.End)
		}
		return elector.Entry{}, false, nil
	}
	return out, true, nil
}

func (l *smallLog) Append(to elector.Address, value []byte, report func(error)) error {
	return l.set.Append(to.Partition, to.ID, value, to.Ballot, report)
}

// Watch watches nothing: each entry carries the id of its log, which shows whether the log is still the same.
func (l *smallLog) Watch(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (l *smallLog) Verify() {}

// Back does nothing: a newcomer waits for W(T) at most, and T is the same for all.
func (l *smallLog) Back(int, func() bool) {}

func (l *smallLog) Close() {
	if err := l.set.Close(); err != nil {
		l.log.Warn("closing the small logs", "error", err)
	}
}
