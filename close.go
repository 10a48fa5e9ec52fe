package neli

import (
	"fmt"
	"time"

	"github.com/goneli/neli/internal/elector"
)

const (
	// closeTail is how long an arbiter waits at most, once it holds nothing, for a Release
	// to be acknowledged or a claim that is under way to be decided.
	closeTail = 6 * time.Second
	// closeClients is how long the Kafka clients may take to stop.
	closeClients = 10 * time.Second
)

// Close gives up leadership in an orderly way and stops everything.
//
// Exclusive mode: it goes on leading until a successor is ready, lets the application
// finish (LeaderRevoked), and releases. With Assigned nomination it leaves the group
// first.
// Non-exclusive mode: it leaves the group at once and leads on for the session timeout
// (10 s at most) plus 1 s, two group heartbeats and two broadcast intervals, HeartbeatTimeout
// at most, so that another member leads by then; if Lead or a Pulser was ended before, from
// that time on. A running Background or Lead goes on meanwhile and delivers
// the events; without one, Close delivers them on its own goroutine. Work that is
// done between two calls of Pulse is unknown to Close. In exclusive mode end such
// a loop first, or call Close from it, or let the barrier wait for the work. In
// non-exclusive mode let the loop go on until Pulse returns ErrClosed, so that
// somebody works for as long as this process leads.
//
// When it returns, nothing of this Neli runs any more. It is idempotent and
// takes, at most, DrainTimeout plus the wait for a successor (1 s, or a
// HeartbeatInterval if that is longer; 4 s with Assigned nomination, or
// more if the group is slow) plus, with an unreachable broker, 12 s (16 s if this process still
// reads, but far behind the log's end). If another goroutine's task or barrier, Config.Healthy or Config.Requests has not returned, or a client has not
// stopped, by then, the error says so; a barrier that Close itself runs is waited for. Close must not be
// called from a barrier, a task or a function that Lead runs: it would wait for itself,
// up to that bound.
func (n *Neli) Close() error {
	n.closeOnce.Do(func() {
		n.state.CompareAndSwap(int32(StateLive), int32(StateClosing))
		n.adjust(func(d *elector.Desired) { d.Closing = true })
		close(n.closing)
		if n.Partitions() == 0 {
			n.stop() // still looking for the broker: there is nothing to give up
		}
	})
	defer n.stop()
	bound := n.set.drain + max(n.set.successorWait, n.set.handoverOverlap) + closeTail + closeClients
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case n.driver <- struct{}{}:
	case <-timer.C:
		return fmt.Errorf("neli: Close: the task or the barrier has not returned within %v", bound)
	}
	defer func() { <-n.driver }()
	for n.ended() == nil {
		n.deliver()
		if !n.wait(timer.C, nil) {
			return fmt.Errorf("neli: Close: the Kafka clients have not stopped within %v", bound)
		}
	}
	n.deliver()
	n.state.Store(int32(StateClosed))
	select {
	case <-n.idle:
		return nil
	case <-timer.C:
		return fmt.Errorf("neli: Close: Config.Requests or Config.Healthy has not returned within %v", bound)
	}
}
