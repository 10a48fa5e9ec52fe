package neli

import (
	"cmp"
	"slices"
	"time"

	"github.com/goneli/neli/internal/term"
)

// Delivery: the arbiter's changes become calls of the barrier, on the driver's goroutine.

// listener follows a delivery on behalf of the driver.
type listener interface {
	// collected is called before the barrier gets any of the changes. If the barrier panics,
	// collected is called again with the changes that are left.
	collected([]term.Change)
	// meanwhile is called before the barrier. The function that it returns is called after the barrier.
	meanwhile() func()
	// delivered is called for each change after the barrier got it.
	delivered(term.Change)
}

// pulses is the listener of Pulse, Background and Close: the application has finished its work
// when the barrier has returned.
type pulses struct{ n *Neli }

func (pulses) collected([]term.Change) {}
func (pulses) meanwhile() func()       { return func() {} }
func (p pulses) delivered(c term.Change) {
	if c.Kind == term.Revoked {
		p.n.core.Drained(c.Units, c.ID)
	}
}

// deliver passes all changes to the application, on this goroutine. The caller is the driver.
func (n *Neli) deliver() { n.deliverTo(pulses{n}) }

// deliverTo first finishes a delivery that a panic of the barrier interrupted. Each change is delivered once.
func (n *Neli) deliverTo(l listener) {
	n.awake()
	if len(n.pending) > 0 {
		l.collected(n.pending)
	}
	for {
		for len(n.pending) > 0 {
			n.tellNext(l)
			n.awake() // a freeze may have begun while the barrier ran
		}
		changes := n.collect()
		if len(changes) == 0 {
			n.settleRoles()
			return
		}
		l.collected(changes)
		n.pending = slices.DeleteFunc(changes, func(c term.Change) bool { return c.Kind == term.Gone })
		n.owed.Store(len(n.pending) > 0)
	}
}

// awake returns once the program is not frozen by package nelitest.
func (n *Neli) awake() {
	n.set.frozen.Wait()
}

// collect takes the arbiter's changes, and counts the units that the application will be told it leads.
func (n *Neli) collect() []term.Change {
	changes := n.core.Collect()
	for _, c := range changes {
		switch c.Kind {
		case term.Acquired:
			n.told += len(c.Units)
		case term.Lost, term.Gone:
			n.told -= len(c.Units)
		case term.Revoked:
		}
	}
	return changes
}

// tellNext calls the barrier once, for the first pending changes that share a reason.
func (n *Neli) tellNext(l listener) {
	first := n.pending[0]
	i := 1
	for i < len(n.pending) && n.pending[i].Reason == first.Reason && n.pending[i].Graceful == first.Graceful {
		i++
	}
	changes := n.pending[:i]
	e := n.event(changes)
	n.set.logger.Info(e.kind(), e.change().attrs()...)
	n.pending = n.pending[i:]
	n.owed.Store(len(n.pending) > 0)
	n.call(e, l)
	for _, c := range changes {
		l.delivered(c)
	}
}

// call runs the barrier. The application counts as alive for as long as the barrier runs, since the
// library asked for that work.
func (n *Neli) call(e Event, l listener) {
	if n.barrier == nil {
		return
	}
	defer n.slow("the barrier has not returned", append([]any{"event", e.kind()}, e.change().attrs()...)...)()
	n.barrierAt.Store(int64(n.now().Mono))
	defer func() {
		n.heard() // before the call is marked as over, so that no silence is seen between the two
		n.barrierAt.Store(never64)
	}()
	defer l.meanwhile()()
	n.barrier(e)
}

// event makes the Event of changes that share a reason.
func (n *Neli) event(cs []term.Change) Event {
	ch := Change{Reason: Reason(cs[0].Reason), Terms: n.terms(cs)}
	switch cs[0].Kind {
	case term.Acquired:
		return LeaderAcquired{ch}
	case term.Revoked:
		// Terms revoked at different times share one event; the earliest deadline counts for
		// all. The deadline has a monotonic reading, which stays right if the wall clock is
		// set. A suspension between the two readings of the clock makes the deadline too
		// early, never too late.
		first := slices.MinFunc(cs, func(a, b term.Change) int { return cmp.Compare(a.Deadline.Mono, b.Deadline.Mono) })
		return LeaderRevoked{ch, time.Now().Add(first.Deadline.Mono.Sub(n.now().Mono))}
	case term.Lost, term.Gone:
		if cs[0].Graceful {
			return LeaderRevoked{ch, time.Time{}}
		}
	}
	return LeaderFenced{ch}
}

// terms makes one Term of the units that have the same partition and token.
func (n *Neli) terms(cs []term.Change) []Term {
	u, below := n.units(), int(n.roles.Load())
	var ts []Term
	for _, c := range cs { // ascending by partition, then by token
		p := c.Vector
		roles := c.Units
		if !u.perRole {
			roles = slices.Collect(u.roles(p, n.named(p, below)))
		}
		if last := len(ts) - 1; last >= 0 && ts[last].Partition == p && ts[last].Token == c.Token {
			ts[last].Roles = append(ts[last].Roles, roles...)
			slices.Sort(ts[last].Roles)
			continue
		}
		ts = append(ts, Term{Partition: p, Token: c.Token, Roles: slices.Clone(roles)})
	}
	return ts
}

// settleRoles forgets former, larger values of R once the application leads nothing, since no
// event can name such roles any more.
func (n *Neli) settleRoles() {
	if n.told == 0 {
		n.mu.Lock()
		n.most = int(n.roles.Load())
		n.mu.Unlock()
	}
}

// named returns the bound below which an event names the roles of partition p. If R now leaves p
// no role, the bound is the largest R since the application last led nothing.
func (n *Neli) named(p, below int) int {
	if p < below {
		return below
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.most
}
