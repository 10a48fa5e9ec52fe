package lease

import (
	"iter"

	"github.com/goneli/neli/internal/clock"
)

// Grantee is the holder of a role according to the fold.
type Grantee struct {
	Session Session
	Name    string
	Token   int64
	Last    int64         // offset of the newest evidence of the session
	Since   clock.Instant // when this process read the claim, or first learnt of it
	Heard   clock.Instant // when it read the newest evidence of the session
	FreeAt  clock.Raw     // when the lease is over by any clock, if nothing more is read until then
}

// Holder returns the holder of role according to the fold, even if its lease is over. ok is
// false if there is none, or if the fold is not known.
func (l *Lease) Holder(role int32) (g Grantee, ok bool) {
	if l.join != nil {
		return Grantee{}, false
	}
	h := l.fold.holderOf(role)
	if h == nil {
		return Grantee{}, false
	}
	token := l.fold.tokens[role]
	g = Grantee{Session: h.Session, Name: h.Name, Token: token, Last: h.Last, Heard: h.heard,
		FreeAt: h.freeAt(l.rules.Rho)}
	if since := l.fold.grants[token]; since != nil {
		g.Since = since.since
	}
	return g, true
}

// Grant returns the token under which role is held, and a small number that stands for its holder
// until the next record is read. It costs less than Holder. ok is false if nobody holds the role,
// or if the fold is not known.
func (l *Lease) Grant(role int32) (token int64, holder int32, ok bool) {
	if l.join != nil || int(role) >= len(l.fold.tokens) || l.fold.tokens[role] == none {
		return none, 0, false
	}
	return l.fold.tokens[role], l.fold.holders[role], true
}

// sessions yields the sessions that hold something, in no particular order, with their index.
func (l *Lease) sessions() iter.Seq2[HolderState, int32] {
	return func(yield func(HolderState, int32) bool) {
		for _, i := range l.fold.index {
			s := &l.fold.session[i]
			if !yield(l.holderState(s), i) {
				return
			}
		}
	}
}

// HolderOf is Holder without the name, the token, and the time when the term began.
func (l *Lease) HolderOf(role int32) (h HolderState, ok bool) {
	if l.join != nil {
		return HolderState{}, false
	}
	s := l.fold.holderOf(role)
	if s == nil {
		return HolderState{}, false
	}
	return l.holderState(s), true
}

func (l *Lease) holderState(s *session) HolderState {
	return HolderState{s.Session, s.held, s.Last, s.heard, s.freeAt(l.rules.Rho)}
}

// Until returns the time from which the lease of the role's holder is over by any clock, if nothing
// is read until then. ok is false as in Holder.
func (l *Lease) Until(role int32) (at clock.Raw, ok bool) {
	if l.join != nil {
		return 0, false
	}
	s := l.fold.holderOf(role)
	if s == nil {
		return 0, false
	}
	return s.freeAt(l.rules.Rho), true
}

// Roles returns a number above all roles that anybody holds, at most MaxRoles.
func (l *Lease) Roles() int32 {
	if l.join != nil {
		return 0
	}
	return int32(len(l.fold.tokens))
}

// HolderState is a session that holds something.
type HolderState struct {
	Session Session
	Held    int   // roles
	Last    int64 // offset of its newest evidence
	Heard   clock.Instant
	FreeAt  clock.Raw
}

// Holders yields the sessions that hold something, in no particular order.
func (l *Lease) Holders() iter.Seq[HolderState] {
	return func(yield func(HolderState) bool) {
		if l.join != nil {
			return
		}
		for h := range l.sessions() {
			if !yield(h) {
				return
			}
		}
	}
}

// RolesOf returns the roles that a session holds, ascending.
func (l *Lease) RolesOf(id Session) []int32 {
	i, ok := l.fold.index[id]
	if !ok || l.join != nil {
		return nil
	}
	roles := make([]int32, 0, l.fold.session[i].held)
	for role, token := range l.fold.tokens {
		if token != none && l.fold.holders[role] == i {
			roles = append(roles, int32(role))
		}
	}
	return roles
}

// Each calls of(h) once for every holder h, then set(role, value) for each role that is held, with
// the value that of returned for the role's holder.
func (l *Lease) Each(of func(HolderState) int32, set func(role, value int32)) {
	if l.join != nil {
		return
	}
	values := make([]int32, len(l.fold.session))
	for h, i := range l.sessions() {
		values[i] = of(h)
	}
	for role, token := range l.fold.tokens {
		if token != none {
			set(int32(role), values[l.fold.holders[role]])
		}
	}
}

// HeldBy returns how many roles a session holds.
func (l *Lease) HeldBy(id Session) int {
	if l.join != nil {
		return 0
	}
	if s := l.fold.find(id); s != nil {
		return s.held
	}
	return 0
}

// Under reports whether a Claim of role by this process is in flight.
func (l *Lease) Under(role int32) bool {
	return l.own.claiming.has(role)
}

// Vacant reports whether the fold is known and nobody holds anything.
func (l *Lease) Vacant() bool { return l.join == nil && len(l.fold.index) == 0 }

// Free returns the roles below the given number that nobody holds, ascending. It is nil if the fold is not known.
func (l *Lease) Free(below int32) []int32 {
	if l.join != nil {
		return nil
	}
	known := min(below, int32(len(l.fold.tokens)))
	held := int32(0)
	for _, i := range l.fold.index {
		held += int32(l.fold.session[i].held) // perhaps roles that are not below, too
	}
	free := make([]int32, 0, max(0, below-held))
	for role, token := range l.fold.tokens[:known] {
		if token == none {
			free = append(free, int32(role))
		}
	}
	for role := known; role < below; role++ {
		free = append(free, role)
	}
	return free
}
