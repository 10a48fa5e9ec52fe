package neli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/quorum"
	"github.com/goneli/neli/kafka"
)

// This file runs an election on a majority of small logs: a Provider's, or partitions of one
// replica each (kafka_small.go). Package internal/quorum has the rules, docs/design.md the
// picture.

// newSmallArbiter opens the small logs and puts the parts together.
func newSmallArbiter(p kafka.SmallLogs, set *settings, clocks clock.Clock, alive func(clock.Instant) bool) (arbiter, error) {
	log, err := openSmallLogs(p, set)
	if err != nil {
		return nil, fmt.Errorf("neli: New: %w", err)
	}
	return newExclusive(set, log, nil, clocks, alive), nil
}

// openSmallLogs opens a Provider's small logs.
func openSmallLogs(p kafka.SmallLogs, set *settings) (elector.Log, error) {
	logs, err := p.SmallLogs(context.Background(), kafka.LogSettings{Group: set.group, Name: set.name, T: set.timeout, Rho: set.drift,
		Logger: set.logger})
	if err != nil {
		return nil, err
	}
	if n := logs.Logs(); n < 1 || n > quorum.MaxLogs || n%2 == 0 {
		_ = logs.Close() // nothing was used
		return nil, fmt.Errorf("the Provider has %d small logs: must be an odd number up to %d", n, quorum.MaxLogs)
	}
	return &smallLog{set: logs, log: set.logger, contact: &set.contact}, nil
}

// smallLog is a LogSet as an elector wants it.
type smallLog struct {
	set     kafka.LogSet
	log     *slog.Logger
	contact *contact
	odd     limiter
}

func (l *smallLog) Open(context.Context) (int, string, error) { return l.set.Logs(), "", nil }

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
		if l.odd.due() {
			l.log.Warn("skipping what a small log cannot have said", "log", e.Log, "id", e.ID, "offset", e.Offset, "end", e.End)
		}
		return elector.Entry{}, false, nil
	}
	return out, true, nil
}

func (l *smallLog) Append(to elector.Address, value []byte, report func(error)) error {
	return l.set.Append(to.Partition, to.ID, value, to.Ballot, report)
}

// Watch has nothing to watch: whether a log is the same one is told by its id, with
// everything that it says.
func (l *smallLog) Watch(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (l *smallLog) Verify() {}

// Back does nothing: a newcomer waits for T at most, as T is the same for the whole group.
func (l *smallLog) Back(int, func() bool) {}

func (l *smallLog) Close() {
	if err := l.set.Close(); err != nil {
		l.log.Warn("closing the small logs", "error", err)
	}
}
