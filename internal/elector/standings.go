package elector

import (
	"iter"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// standings is what this process knows of the holders of a shard's roles.
type standings struct {
	lease   holdings   // who holds what
	logs    []*channel // that say so
	unheard unheard    // holders that were not heard since reading began
	shown   basis      // of the standings when they were last announced
}

// standing returns what is known of a role at time now. Silence is measured as by a process that
// would claim.
func (s *standings) standing(role int32, now clock.Instant) (token int64, g lease.Grantee) {
	if !s.lease.Known() {
		return unknownToken, g
	}
	g, held := s.lease.Holder(role)
	if held && now.Raw < g.FreeAt {
		if s.old(g.Last) {
			return unknownToken, g // it was in the log before this process started; nobody knows for how long
		}
		return s.lease.Tenure(g), g
	}
	if now.Raw < s.lease.FreeAt(role) || !caughtUp(s.logs) { // a member of a newer version may hold it, or a later record may show a holder
		return unknownToken, g
	}
	return vacantToken, g
}

// old reports whether evidence at an offset was in the log before this process started, so that
// its age is unknown. Offsets of several logs say nothing.
func (s *standings) old(offset int64) bool {
	return len(s.logs) == 1 && offset < s.logs[0].end
}

// learned handles that the holders have become known.
func (s *standings) learned() { s.unheard.begin(s.lease.Holders(), s.old) }

// heldBy returns the roles held by some sessions, ascending.
func (s *standings) heldBy(sessions map[lease.Session]bool) (roles []int32) {
	if len(sessions) > 0 {
		s.lease.Each(func(h lease.HolderState) int32 {
			if sessions[h.Session] {
				return 1
			}
			return 0
		}, func(role, yes int32) {
			if yes == 1 {
				roles = append(roles, role)
			}
		})
	}
	return roles
}

// basis is what the standings of a shard's roles depend on. It is different whenever one of them
// is.
type basis struct {
	turns          uint64 // of the holders
	silent         uint64 // of those that are silent
	heard          uint64 // of those that were not heard at first
	free, caughtUp bool   // and so roles that nobody holds are vacant
}

// basis returns the present basis; silent is how often a holder was found silent or heard again.
func (s *standings) basis(silent uint64, now clock.Instant) basis {
	return basis{turns: s.lease.Turns(), silent: silent, heard: s.unheard.turns, caughtUp: caughtUp(s.logs),
		free: now.Raw >= s.lease.FreeAt(s.lease.Roles())}
}

// unheard is the holders that were not heard since reading began. Nothing is known of their roles.
type unheard struct {
	of    map[lease.Session]bool // nil: the holders are not known
	turns uint64                 // how often one of them was heard after all
}

// begin handles that the holders have become known; old reports whether evidence was in the log
// before reading began.
func (u *unheard) begin(holders iter.Seq[lease.HolderState], old func(offset int64) bool) {
	u.of = map[lease.Session]bool{}
	for h := range holders {
		if old(h.Last) {
			u.of[h.Session] = true
		}
	}
}

// heard notes evidence of a session; live means that it was written since reading began. Even a
// session of which there is old evidence only may hold roles.
func (u *unheard) heard(id lease.Session, live bool) {
	switch {
	case !live && u.of != nil:
		u.of[id] = true
	case live && u.of[id]:
		delete(u.of, id)
		u.turns++
	}
}
