package neli

import "time"

// Leadership is what a function run by Lead is told of its role.
type Leadership struct {
	Role      int
	Partition int
	// Token is the fencing token of this term; −1 in non-exclusive mode.
	Token int64

	n  *Neli
	id int64
}

// Valid reports whether this very term lasts at this instant: a check of the
// clock, as IsLeader is. When the context ends with ErrFenced it is false
// already; with ErrRevoked it stays true for as long as the lease is kept, also for
// a role that SetRoles has done away with.
func (l Leadership) Valid() bool {
	if l.n == nil {
		return false
	}
	id, _, _, ok := l.n.arb.table().Leads(l.n.arb.units().of(l.Role))
	return ok && id == l.id
}

// Remaining is how long this very term is sure to last from now on, if it is not
// given up: T minus the age of the newest evidence, 0 if it is over. Evidence renews
// it all the time; what is begun must be finished by then, or guarded by the Token.
func (l Leadership) Remaining() time.Duration {
	if l.n == nil {
		return 0
	}
	id, v, at, leads := l.n.arb.table().Evidence(l.n.arb.units().of(l.Role))
	if !leads || id != l.id {
		return 0
	}
	return l.n.h.left(at, v)
}
