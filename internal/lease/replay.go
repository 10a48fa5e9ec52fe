package lease

import (
	"slices"

	"github.com/goneli/neli/internal/clock"
)

// Replay folds a log after the fact, without a process: it has no session, no clock and no vote. Its
// fold is that of all members which keep to the rules. It is not safe for concurrent use.
type Replay struct{ l *Lease }

// NewReplay returns a replay that reads from an offset on. From offset 0 on, the fold is known at once:
// nobody held anything before. From elsewhere the replay learns it as a member does.
func NewReplay(from int64) *Replay {
	l := New(Rules{History: 1 << 16})
	l.Begin(from, false, clock.Instant{})
	if from == 0 {
		l.known(none)
		l.trail.add(none, 0, l.rules.History)
	}
	return &Replay{l}
}

// Read folds a record of this version. If the fold was known before, it returns the roles with a new holder
// or token, some perhaps twice. Offsets must ascend, and Read be below the offset.
func (p *Replay) Read(o int64, r *Record) (changed []int32) {
	l := p.l
	l.read = o
	if l.join != nil {
		l.readUnknown(o, r, clock.Instant{}, &Event{})
		return nil
	}
	l.changed = l.changed[:0]
	l.foldRecord(o, r, clock.Instant{}, clock.Instant{})
	return slices.Clone(l.changed)
}

// ReadNewer folds a record of a newer version.
func (p *Replay) ReadNewer(o int64) { p.l.ReadNewer(o, clock.Instant{}) }

// Known reports whether the fold is known.
func (p *Replay) Known() bool { return p.l.Known() }

// Holder returns the session that holds a role, and its token. ok is false if nobody does, or if the fold
// is not known.
func (p *Replay) Holder(role int32) (h Holder, token int64, ok bool) {
	s := p.l.fold.holderOf(role)
	if s == nil || !p.l.Known() {
		return Holder{}, none, false
	}
	return s.Holder, p.l.fold.tokens[role], true
}

// Roles returns a number above all roles that anybody holds, at most MaxRoles.
func (p *Replay) Roles() int32 { return p.l.Roles() }

// Contradicts reports whether a record that was just read shows that its sender had another fold: a
// Snapshot of another fold, or a Beat of a session that held nothing. since is the offset of the record
// that set the fold which is contradicted; −1 if it is not known.
func (p *Replay) Contradicts(r *Record) (since int64, yes bool) {
	t := &p.l.trail
	switch {
	case p.l.join != nil:
		return none, false
	case r.Kind == Snapshot && t.differs(r.Read, r.State.Hash):
		return t.before(r.Read), true
	case r.Kind == Beat && p.l.fold.find(r.Session) == nil && t.contradicts(r):
		if o, ended := t.ended[r.Session]; ended {
			return o, true
		}
		return none, true
	}
	return none, false
}

// ByOther reports whether a sentinel wrote the record in the name of a dead process.
func (r *Record) ByOther() bool { return r.Seq >= foreign }

// Hash returns the hash of the fold, as a Snapshot has it.
func (p *Replay) Hash() uint64 { return p.l.fold.hash }
