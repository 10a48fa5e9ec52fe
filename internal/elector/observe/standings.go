package observe

import (
	"iter"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Status is what this process knows about the holder of a role.
type Status int

// Unknown: not enough was read yet, nothing new of the holder since reading began, or a member of a
// newer version may hold it. Vacant: no process holds it, or its holder's lease is over by any clock.
// Held: evidence of the holder was read less than W(T) ago.
const (
	Unknown Status = iota
	Vacant
	Held
)

// Standing is what is known of roles of one partition that have the same holder and token, or no holder.
type Standing struct {
	Partition int
	Status    Status
	Roles     []int // ascending
	Holder    lease.Grantee
}

// A Standing is identified by its tenure, or by one of these.
const (
	UnknownToken = int64(-2)
	VacantToken  = int64(-1)
)

// Share is how many roles a process is known to hold.
type Share struct {
	Process, Name string
	Roles         int
}

// Standings is what this process knows of the holders of a shard's roles.
type Standings struct {
	shard    byrole.Numbering
	of       Fold                      // who holds what
	short    Short                     // the same, but faster; or nil
	tenure   func(lease.Grantee) int64 // identifies one uninterrupted time of holding a role
	logs     Reading                   // how far the logs were read
	silences Silences                  // which holders are silent
	unheard  unheard                   // holders that were not heard since reading began
	shown    basis                     // the basis of the standings that were last announced
}

// Fold is what the standings need to know of who holds what.
type Fold interface {
	Known() bool
	Holder(local int32) (lease.Grantee, bool)
	Holders() iter.Seq[lease.HolderState]
	Each(of func(lease.HolderState) int32, set func(local, value int32))
	Roles() int32
	FreeAt(local int32) clock.Raw
	// Held reports whether a role has a holder whose lease may still be valid by some clock.
	Held(local int32, now clock.Instant) bool
	// NewerUntil is until when a member of a newer version may hold roles without a known
	// holder; zero if there is none.
	NewerUntil() clock.Raw
	// Turns grows whenever a record may have changed what Known or Holder (but for the times) returns
	// for any role; on small logs also FreeAt of a role whose holder, if any, is silent.
	Turns() uint64
}

// Short is what one log tells faster than Fold.
type Short interface {
	// Grant returns the token of a role and a number that stands for its holder; VacantToken and −1 if there is none.
	Grant(local int32) (token int64, holder int32)
	// Version changes whenever a role of a slice (SurveyRoles) gets another holder or token.
	Version(slice int) uint64
}

// Reading says how far the logs of a shard were read.
type Reading interface {
	// CaughtUp reports whether enough is read to believe that a role is vacant.
	CaughtUp() bool
	// Old reports whether evidence at an offset was in the log when reading began, so that its age is
	// unknown.
	Old(offset int64) bool
	// Read is when the logs that count were last read.
	Read() clock.Instant
	// Deaf reports that a process which last read something at a time should have read more by now.
	Deaf(read, now clock.Instant) bool
}

// Silences says which holders are silent.
type Silences interface {
	// Silences is how often a holder was found silent, or was heard again after that.
	Silences() uint64
	// SaidSilent notes that others were told that a holder is silent: they must be told if it is heard again.
	SaidSilent(lease.Session)
}

// NewStandings returns the standings of a shard's roles. short is nil if nothing is faster; tenure identifies
// one uninterrupted time of holding a role.
func NewStandings(shard byrole.Numbering, of Fold, short Short, tenure func(lease.Grantee) int64, logs Reading, silences Silences) Standings {
	return Standings{shard: shard, of: of, short: short, tenure: tenure, logs: logs, silences: silences}
}

// Changed reports, once, that the standings may have changed.
func (s *Standings) Changed(now clock.Instant) bool {
	is := s.basis(now)
	changed := is != s.shown
	s.shown = is
	return changed
}

// Heard notes evidence of a session; live means that it was written since reading began.
func (s *Standings) Heard(id lease.Session, live bool) { s.unheard.heard(id, live) }

// Standing returns what is known of a role at time now. Silence is measured as by a process that would claim.
func (s *Standings) Standing(local int32, now clock.Instant) (token int64, g lease.Grantee) {
	if !s.of.Known() {
		return UnknownToken, g
	}
	g, held := s.of.Holder(local)
	if held && now.Raw < g.FreeAt {
		if s.logs.Old(g.Last) {
			return UnknownToken, g // it was in the log when reading began; nobody knows for how long
		}
		return s.tenure(g), g
	}
	if now.Raw < s.of.FreeAt(local) || !s.logs.CaughtUp() { // a member of a newer version may hold it, or a later record may show a holder
		return UnknownToken, g
	}
	return VacantToken, g
}

// Learned handles that the holders have become known.
func (s *Standings) Learned() { s.unheard.begin(s.of.Holders(), s.logs.Old) }

// HeldBy returns the roles held by some sessions, ascending.
func (s *Standings) HeldBy(sessions map[lease.Session]bool) (roles []int32) {
	if len(sessions) > 0 {
		s.of.Each(func(h lease.HolderState) int32 {
			if sessions[h.Session] {
				return 1
			}
			return 0
		}, func(local, yes int32) {
			if yes == 1 {
				roles = append(roles, local)
			}
		})
	}
	return roles
}

// basis is what the standings of a shard's roles depend on. It changes whenever one of them does.
type basis struct {
	turns          uint64 // Fold.Turns
	silent         uint64 // Silences.Silences
	heard          uint64 // unheard.turns
	free, caughtUp bool   // if both, roles that nobody holds are vacant
}

// basis returns the present basis.
func (s *Standings) basis(now clock.Instant) basis {
	return basis{turns: s.of.Turns(), silent: s.silences.Silences(), heard: s.unheard.turns, caughtUp: s.logs.CaughtUp(),
		free: now.Raw >= s.of.FreeAt(s.of.Roles())}
}
