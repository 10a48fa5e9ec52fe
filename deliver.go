package neli

import (
	"cmp"
	"slices"
	"time"

	"github.com/goneli/neli/internal/term"
)

// Delivery: how what an arbiter has to tell becomes calls of the barrier, on the
// driver's goroutine.

// listener is who drives this Neli, as far as delivery is concerned.
type listener interface {
	// collected is called when the application is about to be told of changes, or was
	// told before of the rest of them.
	collected([]term.Change)
	// meanwhile is called before the barrier is, and what it returns afterwards.
	meanwhile() func()
	// delivered is called for each change of which the barrier has been told.
	delivered(term.Change)
}

// pulses is the listener of Pulse, Background and Close: the application has finished
// when the barrier has returned.
type pulses struct{ n *Neli }

func (pulses) collected([]term.Change) {}
func (pulses) meanwhile() func()       { return func() {} }
func (p pulses) delivered(c term.Change) {
	if c.Kind == term.Revoked {
		p.n.core.Drained(c.Units, c.ID)
	}
}

// deliver tells the application, on this goroutine, what has changed. The caller
// is the driver.
func (n *Neli) deliver() { n.deliverTo(pulses{n}) }

// deliverTo takes up what is left of a delivery that a panic of the barrier ended,
// before it collects anything: each change is told once.
func (n *Neli) deliverTo(l listener) {
	n.set.frozen.Wait()
	if len(n.pending) > 0 {
		l.collected(n.pending)
	}
	for {
		for len(n.pending) > 0 {
			n.tellNext(l)
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

// collect asks the arbiter, and counts the units of which the application has a term.
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

// tellNext calls the barrier once, for the pending changes that have one reason.
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

// call runs the barrier. A revocation has a deadline of its own: the application
// counts as alive until then, though it does not pulse meanwhile.
func (n *Neli) call(e Event, l listener) {
	if n.barrier == nil {
		return
	}
	if _, ok := e.(LeaderRevoked); ok {
		n.drainingTo.Store(int64(n.now().Mono.Add(n.set.drain)))
		defer n.drainingTo.Store(0)
	}
	defer l.meanwhile()()
	n.barrier(e)
}

// event puts into words what changes of one reason say.
func (n *Neli) event(cs []term.Change) Event {
	ch := Change{Reason: Reason(cs[0].Reason), Terms: n.terms(cs)}
	switch cs[0].Kind {
	case term.Acquired:
		return LeaderAcquired{ch}
	case term.Revoked:
		// Terms that were asked for at different times share one event: all is to be
		// finished by the earliest deadline. A time with a monotonic reading is right
		// however the wall clock is set afterwards; and whoever is suspended between the
		// two readings of the clock gets a deadline that is too early, never too late.
		first := slices.MinFunc(cs, func(a, b term.Change) int { return cmp.Compare(a.Deadline.Mono, b.Deadline.Mono) })
		return LeaderRevoked{ch, time.Now().Add(first.Deadline.Mono.Sub(n.now().Mono))}
	case term.Lost, term.Gone:
		if cs[0].Graceful {
			return LeaderRevoked{ch, time.Time{}}
		}
	}
	return LeaderFenced{ch}
}

// terms makes one Term of the units that have a partition and a token in common.
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

// settleRoles forgets larger Rs when no event can speak of them any more.
func (n *Neli) settleRoles() {
	if n.told == 0 {
		n.mu.Lock()
		n.most = int(n.roles.Load())
		n.mu.Unlock()
	}
}

// named is the bound of the roles that an event names of a partition. One on which R
// leaves no role had some when the application was told of it.
func (n *Neli) named(p, below int) int {
	if p < below {
		return below
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.most
}
