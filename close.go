package neli

import (
	"fmt"
	"time"

	"github.com/goneli/neli/internal/elector"
)

const (
	// closeTail limits how long an arbiter without roles waits for a Release to be acknowledged or
	// a claim in flight to be decided.
	closeTail = 6 * time.Second
	// closeClients limits how long the Kafka clients may take to stop.
	closeClients = 10 * time.Second
	// lastLines is the least time left for writing the last log lines, however long closing took before.
	lastLines = time.Second
)

var closingCall = "Close"

// Close gives up leadership in an orderly way and stops everything.
//
// Exclusive mode: this process leads until a successor is ready, lets the application finish
// (LeaderRevoked), and releases its roles. With Assigned nomination it leaves the group first.
//
// Non-exclusive mode: this process leaves the group at once, and leads on so that another member
// leads by then: for the session timeout (10 s at most, unless group.instance.id is set) plus 3 s,
// two group heartbeats and two broadcast intervals, but no longer than HeartbeatTimeout. If Lead or
// a Pulser ended before, the time counts from then.
//
// A running Background or Lead goes on meanwhile and delivers the events. Without one, Close
// delivers them on its own goroutine. Close does not know of work that is done between two calls
// of Pulse. In exclusive mode end such a loop first, or call Close from it, or make the barrier
// wait for the work. In non-exclusive mode let the loop run until Pulse returns ErrClosed, so that
// it works for as long as this process leads.
//
// When Close returns nil, no goroutine and no client of this Neli is left. It is idempotent. In
// exclusive mode it takes at most DrainTimeout, plus the wait for a successor (1 s, or a
// HeartbeatInterval if that is longer; with Assigned nomination 3 s and two group heartbeats, 4 s
// by default), plus 12 s if the broker cannot be reached, or 16 s if this process is still reading
// far behind the log's end. Close waits for a task, a function of Lead, a barrier on another
// goroutine, Config.Healthy, Config.Requests, Config.Preference, Config.Prepare, Config.LoginToken, the clients and the handler of
// Config.Logger for no longer than DrainTimeout, that wait (in non-exclusive mode the time above) and
// 16 s; then the error says which has not returned. Close has no limit for a barrier that it runs itself. It must not be
// called from a barrier, a task or a function of Lead: it would wait for itself up to that limit.
func (n *Neli) Close() error {
	n.closeOnce.Do(func() {
		n.state.CompareAndSwap(int32(StateLive), int32(StateClosing))
		n.adjust(func(d *elector.Desired) { d.Closing = true })
		close(n.closing)
		if n.core.terms.Partitions() == 0 {
			n.stop() // no broker was found yet: there is nothing to give up
		}
	})
	defer n.stop()
	wait := n.set.successorWait
	if n.set.Mode == NonExclusive { // only there a leaving process leads on for the overlap
		wait = max(wait, n.set.handoverOverlap)
	}
	bound := n.set.DrainTimeout + wait + closeTail + closeClients
	began, timer := time.Now(), time.NewTimer(bound)
	defer timer.Stop()
	select {
	case n.driver <- struct{}{}:
		n.turnOf.Store(&closingCall)
	case <-timer.C:
		return fmt.Errorf("neli: Close: the task, the function of Lead or the barrier has not returned within %v", bound)
	}
	defer func() { <-n.driver }()
	for n.ended() == nil {
		n.deliver() // the barrier may take longer than bound, and this Neli may end meanwhile
		if n.ended() == nil && !n.wait(timer.C, nil) {
			return fmt.Errorf("neli: Close: the Kafka clients have not stopped within %v", bound)
		}
	}
	n.deliver()
	n.state.CompareAndSwap(int32(StateClosing), int32(StateClosed))
	timer.Reset(max(lastLines, bound-time.Since(began))) // the barrier may have taken longer than bound
	select {
	case <-n.idle:
	case <-timer.C:
		return fmt.Errorf("neli: Close: Config.Preference, Config.Prepare, Config.Requests, Config.LoginToken or Config.Healthy has not returned within %v", bound)
	}
	if !n.set.lines.Flush(timer.C) {
		return fmt.Errorf("neli: Close: the handler of Config.Logger has not returned within %v", bound)
	}
	return nil
}
