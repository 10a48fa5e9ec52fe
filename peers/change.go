package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/peers/internal/wire"
)

// This file has what a host decides while the list of hosts changes. Some processes then have the old
// list alone, some both, some the new one alone. Two majorities of the same list share a log. A host with both
// lists serves processes with the new one alone only after a majority of the old hosts has left the old one.

// lists are the hosts and the next hosts of a process or a host, as texts. Lists have no numbers: they
// are told apart by their contents, and a process with both knows which one is older.
type lists struct{ hosts, next string }

func listsOf(m *wire.Agreement) lists { return lists{listed(m.GetHosts()), listed(m.GetNext())} }

// serve reports whether a host with lists l may serve a process with lists m.
func (l lists) serve(m lists) bool {
	return l.hosts == m.hosts && (l.next == m.next || l.next == "" || m.next == "") ||
		l.hosts == m.next && l.next == ""
}

// newAlone reports whether a host has both lists and a process the new one alone.
func (l lists) newAlone(m lists) bool { return l.next != "" && l.next == m.hosts && m.next == "" }

// oldAlone reports whether a host has both lists and a process the old one alone.
func (l lists) oldAlone(m lists) bool { return l.next != "" && l.hosts == m.hosts && m.next == "" }

// change is how far a host with both lists has got with the change. It is lost with the host's process,
// like the log: after a restart the host serves processes with the old list alone again, and asks again
// before it serves those with the new one alone. The host's mutex guards it.
type change struct {
	left    bool  // no process with the old list alone is served any more
	open    bool  // processes with the new list alone are served
	opening bool  // host.open is running
	why     error // why the host is not open yet
}

var errLeft = errors.New("a process with the new list of log hosts alone has started: restart this one with that list")

var errAsking = errors.New("it asks the old log hosts to leave the old list, and waits until all leases from before are over")

// leave makes the host refuse processes with the old list alone from now on, and cuts off those that it serves.
func (h *host) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.change.left {
		return
	}
	h.change.left = true
	h.logger.Info("log host leaves the old list", "host", h.self.ID)
	for s := range h.subscribers {
		if s.old {
			h.cutOff(s, status.Error(codes.FailedPrecondition, errLeft.Error()))
		}
	}
}

// admit returns an error if the host does not serve a process with these lists at this time. The
// host's mutex is held.
func (h *host) admit(m lists) error {
	switch {
	case h.lists.oldAlone(m) && h.change.left:
		return status.Error(codes.FailedPrecondition, errLeft.Error())
	case h.lists.newAlone(m) && !h.change.open:
		if !h.change.opening && h.ask != nil {
			h.change.opening, h.change.why = true, cmp.Or(h.change.why, errAsking)
			h.work.Go(h.open)
		}
		return status.Errorf(codes.Unavailable, "this log host has both lists, and not yet the new one alone: %v", h.change.why)
	}
	return nil
}

// open asks the old hosts to leave the old list. Once a majority has, and every lease of a process
// with that list alone is over, this host serves processes with the new list alone. They learn from
// its log the largest ballot that the old hosts had.
func (h *host) open() {
	h.leave()
	top, err := h.leaveOld()
	if err == nil {
		wait := time.NewTimer(clock.Wait(h.agreed.timeout, h.agreed.drift))
		defer wait.Stop()
		select {
		case <-wait.C:
			err = h.top.raise(top)
		case <-h.closing.Done():
			err = h.closing.Err()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.change.opening, h.change.why, h.change.open = false, err, err == nil
	if err == nil {
		h.store.Raise(top)
		h.logger.Info("log host serves processes with the new list alone", "host", h.self.ID)
	}
}

// leaveOld asks the old hosts to leave the old list. It returns the largest ballot of a majority of them.
func (h *host) leaveOld() (top int64, err error) {
	alone := h.agreed
	alone.hosts, alone.next = alone.next, nil
	type answer struct {
		top int64
		err error
	}
	answers := make([]answer, len(h.agreed.hosts))
	var asked sync.WaitGroup
	for i, o := range h.agreed.hosts {
		if o == h.self {
			answers[i].top = h.largest()
			continue
		}
		asked.Go(func() {
			m, err := h.ask(h.closing, o, alone.message(o.ID))
			answers[i] = answer{m.GetTop(), err}
			if err != nil {
				answers[i].err = fmt.Errorf("%s: %w", o.ID, plain(err))
			}
		})
	}
	asked.Wait()
	left, errs := 0, []error(nil)
	for _, a := range answers {
		if a.err != nil {
			errs = append(errs, a.err)
			continue
		}
		left++
		top = max(top, min(a.top, maxBallot))
	}
	if left <= len(answers)/2 {
		return 0, fmt.Errorf("%d of %d old log hosts have left the old list: %w", left, len(answers), errors.Join(errs...))
	}
	return top, nil
}

func (h *host) largest() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.store.Top()
}

// check answers another process that asks whether it agrees with this host.
func (h *host) check(other *wire.Agreement) (*wire.Agreement, error) {
	if err := h.agrees(other, "another log host"); err != nil {
		return nil, err
	}
	m := listsOf(other)
	if h.lists.newAlone(m) {
		h.leave()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lists.oldAlone(m) && h.change.left {
		return nil, status.Error(codes.FailedPrecondition, errLeft.Error())
	}
	answer := h.agreed.message(h.self.ID)
	answer.Top = h.store.Top()
	return answer, nil
}

// ask asks another host whether it agrees.
func (s *settings) ask(ctx context.Context, h Host, what *wire.Agreement) (*wire.Agreement, error) {
	ctx, cancel := context.WithTimeout(ctx, refusedPause)
	defer cancel()
	conn, err := s.connect(h)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return wire.NewSmallLogClient(conn).Check(ctx, what)
}
