package neli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
)

// Transfer hands a role over to another member, and returns nil once that member leads it. This
// process must lead the role. When the member has answered that it is ready, the application is
// told to finish (LeaderRevoked, ReasonTransferred); then the role is released in favour of the
// member, which claims it within a round trip. The role stays there for the term: neither balance
// nor preference moves it. To give up all roles call StepDown.
//
// to is the Member.ID of a member, or its Name if no other member has that name. A member that
// crashed and was started again under its name has two entries for a while: once the announcement of
// the former entry is overdue, the name means the new one. Errors:
//
//   - ErrNotLeader: this process does not lead the role, or is giving it up already;
//   - ErrLeadsAlready: the member is this process;
//   - ErrNoMember: there is no such member, or several have this name;
//   - ErrNoAnswer: the member did not answer within a second (within a HeartbeatInterval if that is
//     longer), because it is dead, cut off or unhealthy; or its answer took a quarter of
//     HeartbeatTimeout, on small logs a half, so it is too far away to claim in time; or it did
//     not prepare the role (Config.Prepare). This process leads on, and the application receives no event;
//   - ErrNotDone: the member answered, and then did not claim the released role in time: it crashed, or its machine
//     was too busy. Others leave the role to it for some round trips, 26 ms at least and half a HeartbeatTimeout at
//     most. Another process or this one leads, or none does yet: Holder knows. Call Transfer there again;
//   - ErrClosed, or the error that ended this Neli; the cause of ctx, whose end does not stop the hand-over.
//
// Transfer takes at most the wait for an answer, a DrainTimeout and two HeartbeatTimeouts; to a member with
// Config.Prepare, such a wait and twice its PrepareTimeout more.
//
// It must not be called from a barrier or task. A function of Lead that calls it for its own role
// must pass its own context, which ends when the function is to return. With another context the
// call would wait for the function itself, and after DrainTimeout the role would be given up while
// the function still runs.
func (n *Neli) Transfer(ctx context.Context, role int, to string) error {
	if ctx == nil {
		return errors.New("neli: Transfer: ctx is nil")
	}
	if n.set.Mode != Exclusive || n.set.Nomination != NominationOpen {
		return errors.New("neli: Transfer: needs Mode Exclusive and Nomination Open")
	}
	if err := n.ended(); err != nil {
		return fmt.Errorf("neli: Transfer: %w", err)
	}
	if !n.IsLeaderOf(role) {
		return fmt.Errorf("neli: Transfer: role %d: %w", role, ErrNotLeader)
	}
	if err := n.handTo(ctx, role, to); err != nil {
		return fmt.Errorf("neli: Transfer: role %d to %s: %w", role, quoted(to), err)
	}
	return nil
}

// handTo is Transfer without its checks.
func (n *Neli) handTo(ctx context.Context, role int, to string) error {
	return n.outcome(n.core.elector.Transfer(ctx, role, to))
}

// stepDownFor is the least time for which a process claims nothing after it has stepped down.
const stepDownFor = 10 * time.Second

// StepDown gives up all roles that this process leads in an orderly way (LeaderRevoked,
// ReasonSteppedDown), and returns when none is left. Meanwhile, and for ten seconds afterwards
// (three HeartbeatTimeouts if that is longer), this process claims nothing, so that other members
// can lead. Then it contends again. Another call restarts that time.
//
// The error is ErrClosed, or the error that ended this Neli, ErrObserver for an observer, or the
// cause of ctx. The end of ctx does not undo the call, nor does it shorten the time without claims.
// StepDown takes at most DrainTimeout and the wait for a successor (as long
// as Close's). If the log does not answer, it stops waiting after three more seconds; a claim of
// this process that arrives after that is given up at once.
//
// It must not be called from a barrier or task. A function of Lead must pass its own context, as
// to Transfer.
func (n *Neli) StepDown(ctx context.Context) error {
	if ctx == nil {
		return errors.New("neli: StepDown: ctx is nil")
	}
	if n.set.Mode != Exclusive {
		return errors.New("neli: StepDown: needs Mode Exclusive: in the other one leadership ends by overlap only")
	}
	if n.set.Observer {
		return ErrObserver
	}
	if err := n.ended(); err != nil {
		return fmt.Errorf("neli: StepDown: %w", err)
	}
	news, stop := n.core.elector.Notify()
	// Away from the start: a role claimed while the application finishes its work would be kept.
	n.adjust(func(d *elector.Desired) {
		n.stepping++
		d.Away = clock.Never
	})
	end := func() {
		stop()
		n.adjust(func(d *elector.Desired) {
			if n.stepping--; n.stepping == 0 { // another call may still wait
				d.Away = n.now().Mono.Add(max(stepDownFor, 3*n.set.HeartbeatTimeout))
			}
		})
	}
	idle := n.core.elector.Idle
	err := n.until(ctx, news, idle)
	if err == nil {
		end()
		return nil
	}
	n.finishStepDown(func() {
		_ = n.until(context.Background(), news, idle) // at most until this Neli has ended
		end()
	})
	return fmt.Errorf("neli: StepDown: %w", err)
}

// finishStepDown runs the rest of a StepDown whose context has ended, on a goroutine that Close waits for.
func (n *Neli) finishStepDown(rest func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended() == nil { // otherwise nobody waits for it any more, and nothing is left to do
		n.stepDowns.Go(rest)
	}
}

// until waits until met returns true, and asks again at each news.
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
