package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/goneli/neli/peers/internal/wire"
	"github.com/goneli/neli/peers/smalllog"
)

// host has one incarnation of a small log, and serves it to its subscribers.
type host struct {
	self      Host
	agreed    agreement
	lists     lists // of agreed
	top       *top
	logger    *slog.Logger
	refusals  logLimit
	unwritten logLimit // apart, so that strangers cannot hide what is wrong with TopFile
	ask       func(context.Context, Host, *wire.Agreement) (*wire.Agreement, error)
	closing   context.Context // done when the host ends

	mu          sync.Mutex
	store       *smalllog.Log
	subscribers map[*subscriber]struct{}
	change      change
	work        sync.WaitGroup // goroutines of streams, and open
}

// serverStream is the host's end of a stream, over the network or within the process.
type serverStream interface {
	Send(*wire.FromHost) error
	Recv() (*wire.ToHost, error)
	Context() context.Context
}

const (
	// maxSubscribers bounds what strangers can make a host store.
	maxSubscribers = 1_000
	// helloWithin is the time limit for a client's first message.
	helloWithin = 10 * time.Second
	// maxRefusals is how many refusals may wait to be sent to one client. While that many wait, its
	// further records are not read.
	maxRefusals = 64
)

// newHost returns a host with a new and empty log.
func newHost(self Host, agreed agreement, top *top, logger *slog.Logger) *host {
	store := smalllog.New(smalllog.NewID(), smalllog.DefaultLimits, top.known())
	return &host{self: self, agreed: agreed, lists: listsOf(agreed.message("")), top: top, logger: logger, store: store,
		subscribers: map[*subscriber]struct{}{}, closing: context.Background()}
}

// subscriber is the state of one stream. Except for the channels, the host's mutex guards it.
type subscriber struct {
	reader   *smalllog.Reader
	own      map[int64]uint64    // records that it appended and that were not sent to it yet: offset → its number
	more     chan struct{}       // has an element when there may be records to read
	cut      chan error          // has the reason once it is cut off
	old      bool                // it has the old list alone, and this host has both
	refusals chan *wire.FromHost // waiting to be sent
}

// follow serves one stream until it ends.
func (h *host) follow(s serverStream) error {
	first, err := h.hello(s)
	if err != nil {
		return err
	}
	if err := h.agrees(first.GetAgreement(), first.GetMember()); err != nil {
		return err
	}
	sub, begin, err := h.subscribe(first)
	if err != nil {
		return err
	}
	defer h.unsubscribe(sub)
	if err := s.Send(&wire.FromHost{Kind: &wire.FromHost_Begin{Begin: begin}}); err != nil {
		return err
	}
	ended := make(chan error, 2)
	h.work.Go(func() { ended <- h.receive(s, sub) })
	h.work.Go(func() { ended <- h.push(s, sub) })
	select {
	case err := <-ended:
		return err
	case err := <-sub.cut:
		if errors.Is(err, smalllog.ErrSlow) {
			h.logger.Warn("subscriber reads too slowly: cut off", "host", h.self.ID, "member", brief(first.GetMember()))
			return status.Errorf(codes.ResourceExhausted, "%v: cut off", err)
		}
		return err
	}
}

// hello waits for a client's first message.
func (h *host) hello(s serverStream) (*wire.Hello, error) {
	type result struct {
		m   *wire.ToHost
		err error
	}
	got := make(chan result, 1)
	h.work.Go(func() {
		m, err := s.Recv()
		got <- result{m, err}
	})
	late := time.NewTimer(helloWithin)
	defer late.Stop()
	select {
	case r := <-got:
		if r.err == nil && r.m.GetHello().GetAgreement() == nil {
			return nil, status.Error(codes.InvalidArgument, "the first message is not a hello")
		}
		return r.m.GetHello(), r.err
	case <-late.C:
		return nil, status.Errorf(codes.DeadlineExceeded, "no hello within %v", helloWithin)
	}
}

// agrees returns an error that names all differences if the other's agreement differs, or if it wants another host.
func (h *host) agrees(other *wire.Agreement, who string) error {
	d := h.agreed.differences(other)
	if meant := other.GetHost(); len(d) == 0 && meant != h.self.ID {
		d = append(d, fmt.Sprintf("log host: %q here, %q wanted", h.self.ID, brief(meant)))
	}
	if len(d) == 0 {
		return nil
	}
	why := strings.Join(d, "; ")
	if h.refusals.due(brief(who) + ": " + why) {
		h.logger.Error("refused: its configuration differs from that of this log host", "host", h.self.ID, "member", brief(who), "differences", why)
	}
	return status.Error(codes.FailedPrecondition, "another configuration: "+why)
}

func (h *host) subscribe(first *wire.Hello) (*subscriber, *wire.Begin, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.subscribers) >= maxSubscribers {
		return nil, nil, status.Errorf(codes.ResourceExhausted, "there are already %d subscribers", maxSubscribers)
	}
	m := listsOf(first.GetAgreement())
	if err := h.admit(m); err != nil {
		return nil, nil, err
	}
	id := h.store.ID()
	from := int64(0)
	if string(first.GetIncarnation()) == string(id[:]) {
		from = first.GetFrom()
	}
	s := &subscriber{reader: h.store.Subscribe(from), own: map[int64]uint64{}, more: make(chan struct{}, 1),
		cut: make(chan error, 1), old: h.lists.oldAlone(m), refusals: make(chan *wire.FromHost, maxRefusals)}
	h.subscribers[s] = struct{}{}
	ring(s.more)
	return s, &wire.Begin{Incarnation: id[:], Offset: s.reader.Next(), End: h.store.End(), First: h.store.First(), Top: h.store.Top()}, nil
}

func (h *host) unsubscribe(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subscribers, s)
}

// receive appends the records that a client sends.
func (h *host) receive(s serverStream, sub *subscriber) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		a := m.GetAppend()
		if a == nil || a.GetSeq() == 0 {
			return status.Error(codes.InvalidArgument, "neither a hello nor an append")
		}
		err = h.append(a, sub)
		if err == nil {
			continue
		}
		refusal := &wire.FromHost{Kind: &wire.FromHost_Refusal{Refusal: &wire.Refusal{Seq: a.GetSeq(), Reason: err.Error()}}}
		select {
		case sub.refusals <- refusal:
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
}

var errBallot = errors.New("an impossible ballot")

// append appends a subscriber's record and wakes all subscribers. It cuts off those that have fallen behind.
func (h *host) append(a *wire.Append, by *subscriber) error {
	var id smalllog.ID
	if len(a.GetIncarnation()) != len(id) {
		return smalllog.ErrIncarnation
	}
	copy(id[:], a.GetIncarnation())
	if id != h.store.ID() {
		return fmt.Errorf("%w: the record is for %v, this is %v", smalllog.ErrIncarnation, id, h.store.ID())
	}
	if a.GetBallot() < 0 || a.GetBallot() > maxBallot {
		return errBallot
	}
	if err := h.top.raise(a.GetBallot()); err != nil {
		if h.unwritten.due("TopFile") { // the error itself has a new name of a temporary file each time
			h.logger.Error("record refused: the file of the largest ballot cannot be written", "host", h.self.ID, "error", err)
		}
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if by.old && h.change.left {
		return errLeft
	}
	o, err := h.store.Append(id, a.GetValue(), a.GetBallot())
	if err != nil {
		return err
	}
	by.own[o] = a.GetSeq()
	for s := range h.subscribers {
		if s.reader.Slow() {
			h.cutOff(s, smalllog.ErrSlow)
			continue
		}
		ring(s.more)
	}
	return nil
}

// cutOff ends a stream. The host's mutex is held.
func (h *host) cutOff(s *subscriber, why error) {
	delete(h.subscribers, s)
	s.cut <- why
}

// read returns the next record for a subscriber, nil if there is none.
func (h *host) read(s *subscriber) (*wire.FromHost, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	value, o, ok, err := s.reader.Read()
	if err != nil || !ok {
		return nil, err
	}
	r := &wire.Record{Offset: o, Value: value, Seq: s.own[o]}
	delete(s.own, o)
	return &wire.FromHost{Kind: &wire.FromHost_Record{Record: r}}, nil
}

// push sends the records in order to a client. If there are none for T/4, it sends that the host is alive.
func (h *host) push(s serverStream, sub *subscriber) error {
	idle := time.NewTimer(h.agreed.timeout / 4)
	defer idle.Stop()
	for {
		select {
		case <-s.Context().Done():
			return s.Context().Err()
		case m := <-sub.refusals:
			if err := s.Send(m); err != nil {
				return err
			}
			continue // a refusal says nothing of the log: the next sign of life is due as before
		case <-sub.more:
			if err := h.pushRecords(s, sub); err != nil {
				return err
			}
		case <-idle.C:
			if err := s.Send(h.alive()); err != nil {
				return err
			}
		}
		idle.Reset(h.agreed.timeout / 4)
	}
}

func (h *host) pushRecords(s serverStream, sub *subscriber) error {
	for {
		m, err := h.read(sub)
		if err != nil {
			return status.Errorf(codes.ResourceExhausted, "%v: cut off", err)
		}
		if m == nil {
			return nil
		}
		if err := s.Send(m); err != nil {
			return err
		}
	}
}

func (h *host) alive() *wire.FromHost {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := h.store.ID()
	return &wire.FromHost{Kind: &wire.FromHost_Alive{Alive: &wire.Alive{Incarnation: id[:], End: h.store.End()}}}
}

func ring(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
