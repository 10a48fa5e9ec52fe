package neli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
)

// Transfer hands a role over to another member, and returns nil once that leads it.
// This process must lead the role: once the member has answered, the application is
// told to finish (LeaderRevoked, ReasonTransferred), and the role is then released in
// favour of the member, which claims it in a round trip. There it stays for the term:
// neither balance nor preference moves it. Who wants to be rid of everything calls
// StepDown.
//
// to is the Member.ID of a member, or its Name if no other has that. Errors:
// ErrNotLeader (also if the partition is being given up already), ErrLeadsAlready (the
// member is this process), ErrNoMember and
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
	if err := n.handTo(ctx, role, to); err != nil {
		return fmt.Errorf("neli: Transfer: role %d to %q: %w", role, to, err)
	}
	return nil
}

// handTo does what Transfer does, once it is known that it may be done.
func (n *Neli) handTo(ctx context.Context, role int, to string) error {
	return n.outcome(n.core.elector.Transfer(ctx, role, to))
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
// a successor (as long as Close's) at most, and where nothing arrives any more three
// seconds, after which it does not wait for claims to come back or releases to be
// acknowledged: what such a claim brings is given up unled. Like Close it must not be
// called from a barrier or task.
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
	news, stop := n.core.elector.Notify()
	defer stop()
	// What it claimed while the application still finishes its work it would hold on to.
	n.adjust(func(d *elector.Desired) {
		n.stepping++
		d.Away = clock.Never
	})
	defer n.adjust(func(d *elector.Desired) {
		if n.stepping--; n.stepping == 0 { // another call may still wait
			d.Away = n.now().Mono.Add(max(stepDownFor, 3*n.set.timeout))
		}
	})
	if err := n.until(ctx, news, n.core.elector.Idle); err != nil {
		return fmt.Errorf("neli: StepDown: %w", err)
	}
	return nil
}

// until waits for a condition that news may fulfil.
func (n *Neli) until(ctx context.Context, news <-chan struct{}, met func() bool) error {
	for !met() {
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-n.done:
			return n.ended()
		}
	}
	return nil
}
