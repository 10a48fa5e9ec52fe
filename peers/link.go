package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/peers/internal/wire"
	"github.com/goneli/neli/peers/smalllog"
)

// link is a process's connection to one log host. It connects, reads on where it stopped, and
// connects again when it hears nothing.
type link struct {
	index    int
	to       Host
	settings *settings
	open     func(ctx context.Context) (clientStream, func(), error) // call the function when ctx is done: it cleans up
	emit     func(ctx context.Context, e kafka.LogEntry) bool        // false: ctx is done, and the elector does not get e
	refused  func(index int, err error)                              // called when a host refuses this process (see disagreement)
	logger   *slog.Logger

	// Only for run's goroutine.
	known       smalllog.ID // the incarnation last reported to the elector
	next        int64       // the first offset that the elector does not have; −1: none was reported
	said        string      // the trouble last logged; empty: none since the host was reached
	saidRefused bool
	saidAt      time.Time

	current atomic.Pointer[connection]
}

// clientStream is a member's end of a stream.
type clientStream interface {
	Send(*wire.ToHost) error
	Recv() (*wire.FromHost, error)
}

var (
	errSilent     = errors.New("nothing was heard for too long")
	errUnanswered = errors.New("a record was not answered for too long")
	errProtocol   = errors.New("not what the protocol allows")
)

// patience is how long a host may be silent, or a record may stay without an answer. A beat that
// takes longer than T is of no use.
func (s *settings) patience() time.Duration { return max(s.agreed.timeout, 250*time.Millisecond) }

// connectWithin is how long connecting may take if T is shorter: a few round trips. If it were
// longer, a link would wait, even after a cut has healed, for attempts that the cut has swallowed.
const connectWithin = 500 * time.Millisecond

// refusedPause is the pause after a host has refused this process. Only a restart or new certificates change that.
const refusedPause = 5 * time.Second

// run keeps the connection up until ctx is done.
func (l *link) run(ctx context.Context) {
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval = max(10*time.Millisecond, l.settings.agreed.timeout/32)
	retry.MaxInterval = min(2*time.Second, max(100*time.Millisecond, l.settings.agreed.timeout/2))
	for ctx.Err() == nil {
		began := time.Now()
		err := l.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > l.settings.patience()+retry.MaxInterval {
			retry.Reset() // it was up for a while
		}
		wait := retry.NextBackOff()
		if disagreement(err) {
			wait = refusedPause
			l.refused(l.index, fmt.Errorf("log host %s (%s) refuses: %w", l.to.ID, l.to.Address, plain(err)))
		}
		l.tell(err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// disagreement reports whether only another configuration, or another binary, can mend an error.
func disagreement(err error) bool {
	switch status.Code(err) {
	case codes.FailedPrecondition, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return true
	}
	return false
}

// tell logs why there is no connection: once when it is lost or refused, and then each new reason,
// at most every ten seconds.
func (l *link) tell(err error) {
	why, refused := plain(err).Error(), disagreement(err)
	if why == l.said || l.said != "" && refused == l.saidRefused && time.Since(l.saidAt) < 10*time.Second {
		return
	}
	l.said, l.saidRefused, l.saidAt = why, refused, time.Now()
	if refused {
		l.logger.Error("log host refuses this process", "host", l.to.ID, "address", l.to.Address, "error", why)
		return
	}
	l.logger.Warn("log host cannot be reached, retrying", "host", l.to.ID, "address", l.to.Address, "error", why)
}

// session is one connection, from the attempt to its end.
func (l *link) session(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	patience := l.settings.patience()
	watchdog := time.AfterFunc(max(patience, connectWithin), func() { cancel(errSilent) })
	defer watchdog.Stop()
	stream, end, err := l.open(ctx)
	if err != nil {
		return reason(ctx, err)
	}
	defer end()
	defer cancel(nil)
	begin, err := l.greet(stream)
	if err != nil {
		return reason(ctx, err)
	}
	c := newConnection(begin, patience)
	watchdog.Stop()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.send(ctx, stream, l.settings.agreed.timeout/4)
	}()
	l.current.Store(c)          // before the reset is reported: a record appended after that must find a connection
	if l.begin(ctx, c, begin) { // false: ctx is done
		err = l.receive(ctx, stream, c, watchdog)
	}
	l.current.Store(nil)
	err = reason(ctx, err)
	cancel(err)
	<-sent
	c.fail(fmt.Errorf("connection to log host %s lost: %w", l.to.ID, err))
	return err
}

// reason returns why ctx was cancelled, or err if it was not.
func reason(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (l *link) greet(stream clientStream) (*wire.Begin, error) {
	hello := &wire.Hello{Agreement: l.settings.agreed.message(l.to.ID), Member: l.settings.name}
	if l.next >= 0 {
		hello.Incarnation, hello.From = l.known[:], l.next
	}
	// Send's error is io.EOF. Recv returns the reason.
	_ = stream.Send(&wire.ToHost{Kind: &wire.ToHost_Hello{Hello: hello}})
	m, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	b := m.GetBegin()
	if b == nil || len(b.GetIncarnation()) != len(l.known) || b.GetOffset() < 0 || b.GetEnd() < b.GetOffset() ||
		b.GetTop() < 0 || b.GetTop() > maxBallot {
		return nil, fmt.Errorf("%w: the first message is not a begin", errProtocol)
	}
	return b, nil
}

// begin reports a reset, or only a sign of life if reading goes on where it stopped. If a reset could
// not be reported to the elector, the next connection reports it again.
func (l *link) begin(ctx context.Context, c *connection, b *wire.Begin) bool {
	if l.said != "" {
		l.said = ""
		l.logger.Info("log host is reached", "host", l.to.ID, "address", l.to.Address)
	}
	e := kafka.LogEntry{Kind: kafka.LogReset, Log: l.index, ID: c.id.String(), Offset: b.GetOffset(), First: b.GetFirst(), End: b.GetEnd(), Top: b.GetTop()}
	if c.id == l.known && b.GetOffset() == l.next {
		e.Kind = kafka.LogAlive
	} else if l.next >= 0 {
		l.logger.Warn("log begins anew", "host", l.to.ID, "address", l.to.Address, "same_incarnation", c.id == l.known,
			"offset", b.GetOffset(), "wanted", l.next)
	}
	if !l.emit(ctx, e) {
		return false
	}
	l.known, l.next = c.id, b.GetOffset()
	return true
}

// receive reads what the host sends until the connection ends.
func (l *link) receive(ctx context.Context, stream clientStream, c *connection, watchdog *time.Timer) error {
	for {
		watchdog.Reset(l.settings.patience())
		m, err := stream.Recv()
		watchdog.Stop() // a slow reader of entries is not the host's fault
		if err != nil {
			return err
		}
		e := kafka.LogEntry{Log: l.index, ID: c.id.String()}
		switch {
		case m.GetRecord() != nil:
			r := m.GetRecord()
			if r.GetOffset() != l.next {
				return fmt.Errorf("%w: record %d instead of %d", errProtocol, r.GetOffset(), l.next)
			}
			if r.GetSeq() != 0 {
				c.answered(r.GetSeq(), nil)
			}
			e.Kind, e.Offset, e.Value = kafka.LogRecord, r.GetOffset(), r.GetValue()
		case m.GetAlive() != nil:
			e.Kind, e.End = kafka.LogAlive, m.GetAlive().GetEnd()
		case m.GetRefusal() != nil:
			c.answered(m.GetRefusal().GetSeq(), fmt.Errorf("log host %s refuses the record: %s", l.to.ID, brief(m.GetRefusal().GetReason())))
			continue
		default:
			return fmt.Errorf("%w: an unknown message", errProtocol)
		}
		if !l.emit(ctx, e) {
			return ctx.Err() // the next connection asks again for records that were not passed on
		}
		if e.Kind == kafka.LogRecord {
			l.next = e.Offset + 1
		}
		if c.overdue(time.Now()) {
			return errUnanswered
		}
	}
}

// append takes a record if there is a connection to the incarnation id, with room.
func (l *link) append(id string, value []byte, ballot int64, report func(error)) error {
	c := l.current.Load()
	switch {
	case c == nil:
		return fmt.Errorf("log host %s: %w", l.to.ID, errDown)
	case c.id.String() != id:
		return fmt.Errorf("log host %s: %w", l.to.ID, smalllog.ErrIncarnation)
	}
	return c.enqueue(&outgoing{value: value, ballot: ballot, at: time.Now(), report: report})
}
