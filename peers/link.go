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

// link is a process's way to one log host: it connects, reads on where it was, and
// connects again when nothing is heard.
type link struct {
	index    int
	to       Host
	settings *settings
	open     func(ctx context.Context) (clientStream, func(), error) // the function ends the stream, and waits until it has
	emit     func(ctx context.Context, e kafka.LogEntry) bool        // false: ctx is done, and the elector does not have e
	refused  func(index int, err error)                              // by a host that disagrees
	logger   *slog.Logger

	// Of run's goroutine.
	known       smalllog.ID // the incarnation that the elector was told of last
	next        int64       // the first offset that the elector does not have; −1: it was told of none
	said        string      // the trouble that was logged last; empty: none since it was reached
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

// patience is for how long a host may be silent, or a record without an answer. A beat
// that takes longer than T serves nobody.
func (s *settings) patience() time.Duration { return max(s.agreed.timeout, 250*time.Millisecond) }

// connectWithin is for a connection to be made and greeted, where T is shorter: a few round
// trips. Longer, and what a cut has swallowed would be waited for after it has healed.
const connectWithin = 500 * time.Millisecond

// refusedPause is for hosts that disagree: nothing but a restart changes that.
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
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// disagreement tells an error that only another configuration, or another binary, mends.
func disagreement(err error) bool {
	switch status.Code(err) {
	case codes.FailedPrecondition, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return true
	}
	return false
}

// tell logs why there is no connection: when it is lost or refused, and for another reason
// than before at most every ten seconds.
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
	l.current.Store(c)          // before anybody is told: what is appended then must find a connection
	if l.begin(ctx, c, begin) { // or ctx is done
		err = l.receive(ctx, stream, c, watchdog)
	}
	l.current.Store(nil)
	err = reason(ctx, err)
	cancel(err)
	<-sent
	c.fail(fmt.Errorf("connection to log host %s lost: %w", l.to.ID, err))
	return err
}

// reason is why ctx was cancelled, if it was, and err otherwise.
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
	// An error of Send is io.EOF; Recv has the reason.
	_ = stream.Send(&wire.ToHost{Kind: &wire.ToHost_Hello{Hello: hello}})
	m, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	b := m.GetBegin()
	if b == nil || len(b.GetIncarnation()) != len(l.known) || b.GetOffset() < 0 || b.GetEnd() < b.GetOffset() ||
		b.GetTop() < 0 || b.GetTop() > maxBallot {
		return nil, fmt.Errorf("%w: the first message is no begin", errProtocol)
	}
	return b, nil
}

// begin tells where reading begins, unless it goes on where it was. An elector that could
// not be told of a reset is told again, by the next connection.
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
		watchdog.Stop() // a reader of entries that is slow is not the host's fault
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
			return ctx.Err() // the next connection asks for what was not handed on
		}
		if e.Kind == kafka.LogRecord {
			l.next = e.Offset + 1
		}
		if c.overdue(time.Now()) {
			return errUnanswered
		}
	}
}

// append hands a record over, unless there is no connection to the incarnation id.
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
