package neli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// mover is what an arbiter can do to bring leadership to another process. Only
// exclusive mode's can.
type mover interface {
	discovery
	// transfer begins to hand p over to the member with that id or name. It returns
	// the member's id and the token of the term that is given up.
	transfer(p int, to string) (id string, token int64, err error)
	// calledOff reports whether the term of p with this token goes on, and is not
	// given up any more.
	calledOff(p int, token int64) bool
	// holding reports whether anything is held or being released.
	holding() bool
}

// Transfer hands the partition on which role lives over to another member, with all
// roles that live there, and returns nil once that leads. This process must lead
// the role: once the member has answered, the application is told to finish
// (LeaderRevoked, ReasonTransferred), and the partition is then released in favour of
// the member, which claims it in a round trip. There it stays for the term: neither
// balance nor preference moves it.
//
// to is the Member.ID of a member, or its Name if no other has that. Errors:
// ErrNotLeader (also if the partition is being given up already), ErrNoMember and
// ErrNoAnswer (within a second, or a HeartbeatInterval of up to fifteen seconds if that is
// longer: the member is dead, cut off, or unhealthy by now), upon which this process
// leads on, and the application hears of nothing;
// ErrNotTransferred, when the member did not claim in time what was released, and
// another one, or this process, leads instead, or nobody yet; ErrClosed or what ended
// this Neli; the cause of ctx, whose end does not stop the hand-over.
//
// It needs exclusive mode, and Open nomination (with Assigned the group says who may
// claim). It takes that wait, a DrainTimeout and two HeartbeatTimeouts at most. Like
// Close it must not be called from a barrier or task.
func (n *Neli) Transfer(ctx context.Context, role int, to string) error {
	if ctx == nil {
		return errors.New("neli: Transfer: ctx is nil")
	}
	if n.set.mode != Exclusive || n.set.nomination != Open {
		return errors.New("neli: Transfer: needs Mode Exclusive and Nomination Open")
	}
	if err := n.ended(); err != nil {
		return fmt.Errorf("neli: Transfer: %w", err)
	}
	if !n.IsLeaderOf(role) {
		return fmt.Errorf("neli: Transfer: role %d: %w", role, ErrNotLeader)
	}
	a := n.arb.(mover)
	w := a.watch()
	defer a.unwatch(w)
	p := partitionOf(role, n.arb.units().partitions)
	id, token, err := a.transfer(p, to)
	if err != nil {
		return fmt.Errorf("neli: Transfer: role %d to %q: %w", role, to, err)
	}
	limit, stop := context.WithTimeoutCause(ctx, n.set.successorWait+n.set.drain+2*n.set.timeout,
		fmt.Errorf("%w: nobody leads yet", ErrNotTransferred))
	defer stop()
	err = n.until(limit, w, func() (bool, error) {
		s := a.standing(p)
		switch {
		case s.Status == Held && s.Holder.Token == token && a.calledOff(p, token):
			return true, ErrNoAnswer
		case s.Status != Held || s.Holder.Token == token:
			return false, nil
		case s.Holder.Member == id:
			return true, nil
		}
		return true, fmt.Errorf("%w: %s", ErrNotTransferred, s.Holder.Name)
	})
	if err != nil {
		return fmt.Errorf("neli: Transfer: role %d to %q: %w", role, to, err)
	}
	return nil
}

// stepDownFor is how long a process that has stepped down claims nothing, at least.
const stepDownFor = 10 * time.Second

// StepDown gives up everything that this process leads, in an orderly way
// (LeaderRevoked, ReasonSteppedDown), and returns when it leads nothing any more.
// Meanwhile, and then for ten seconds, or three HeartbeatTimeouts if that is longer,
// it claims nothing, so that others lead if there are any; then it contends again.
// Another call begins that time anew.
//
// The error is ErrClosed or what ended this Neli, or the cause of ctx, whose end
// does not call it off. It needs exclusive mode. It takes DrainTimeout and the wait for
// a successor (as long as Close's) at most. Like Close it must not be called from a
// barrier or task.
func (n *Neli) StepDown(ctx context.Context) error {
	if ctx == nil {
		return errors.New("neli: StepDown: ctx is nil")
	}
	if n.set.mode != Exclusive {
		return errors.New("neli: StepDown: needs Mode Exclusive: in the other one leadership ends by overlap only")
	}
	if n.set.observer {
		return ErrObserver
	}
	if err := n.ended(); err != nil {
		return fmt.Errorf("neli: StepDown: %w", err)
	}
	a := n.arb.(mover)
	w := a.watch()
	defer a.unwatch(w)
	// What it claimed while the application still finishes its work it would hold on to.
	n.adjust(func(p *posture) {
		n.stepping++
		p.away = math.MaxInt64
	})
	defer n.adjust(func(p *posture) {
		if n.stepping--; n.stepping == 0 { // another call may still wait
			p.away = n.now().mono + max(stepDownFor, 3*n.set.timeout)
		}
	})
	if err := n.until(ctx, w, func() (bool, error) { return !a.holding(), nil }); err != nil {
		return fmt.Errorf("neli: StepDown: %w", err)
	}
	return nil
}

// until waits for a condition that changes of standings may fulfil.
func (n *Neli) until(ctx context.Context, w *watcher, met func() (bool, error)) error {
	for {
		if ok, err := met(); ok {
			return err
		}
		select {
		case <-w.bell:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-n.done:
			return n.ended()
		}
	}
}

func (a *leaseArbiter) transfer(p int, to string) (string, int64, error) {
	a.mu.Lock()
	defer a.unlock()
	l := &a.leases[p]
	if !l.holds(a.now()) || a.hands[p] != nil || !a.Told(p) {
		return "", 0, ErrNotLeader
	}
	id := a.peers.find(to)
	if id == "" {
		return "", 0, ErrNoMember
	}
	a.hand(p, &handover{why: ReasonTransferred, since: a.now(), to: id, named: true, pinned: true})
	a.prod()
	return id, l.mine, nil
}

func (a *leaseArbiter) calledOff(p int, token int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leases[p].mine == token && a.hands[p] == nil
}

func (a *leaseArbiter) holding() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	held, claiming := a.busy()
	return held || claiming || a.farewells > 0
}
