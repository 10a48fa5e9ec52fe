package lease

import (
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// fold is the state machine that the log drives: the holder of each role. At every offset
// it is the same in all processes that know it, and hash tells two different folds apart.
// A free role has no state, and a session that holds nothing is forgotten.
type fold struct {
	tokens  []int64 // by role: offset of the valid Claim, none if the role is free
	holders []int32 // by role that is held: index into session
	grants  map[int64]*grant
	index   map[Session]int32
	session []session
	unused  []int32 // indices of session that are free
	newer   int64   // offset of the newest record of a newer version, none after a valid Claim
	hash    uint64
	ended   []Session // sessions forgotten since the last takeEnded
}

// session is a holder. heard, the time when this process read the holder's newest evidence, is not part of the fold.
type session struct {
	Holder
	held  int // roles
	key   uint64
	heard clock.Instant
}

// freeAt is when the session's lease is over by any clock, if nothing more is read of it.
func (s *session) freeAt(rho float64) clock.Raw { return clock.FreeAt(s.heard.Raw, s.T, rho) }

// grant counts the roles still held by one valid Claim. since is not part of the fold.
type grant struct {
	roles int
	since clock.Instant
}

func newFold() fold {
	return fold{newer: none, grants: map[int64]*grant{}, index: map[Session]int32{}}
}

// clear makes all roles free.
func (f *fold) clear() {
	tokens, holders, ended := f.tokens[:0], f.holders[:0], f.ended
	for id := range f.index {
		ended = append(ended, id)
	}
	*f = newFold()
	f.tokens, f.holders, f.ended = tokens, holders, ended
}

// takeEnded returns the sessions that lost their last role, and forgets them.
func (f *fold) takeEnded() []Session {
	ended := f.ended
	f.ended = nil
	return ended
}

// holderOf returns the session that holds role, or nil.
func (f *fold) holderOf(role int32) *session {
	if int(role) >= len(f.tokens) || f.tokens[role] == none {
		return nil
	}
	return &f.session[f.holders[role]]
}

// find returns the session with that id if it holds something, or nil.
func (f *fold) find(id Session) *session {
	i, ok := f.index[id]
	if !ok {
		return nil
	}
	return &f.session[i]
}

// longest is the largest T of any holder. While a newer version may hold roles, it is the largest T allowed.
func (f *fold) longest() time.Duration {
	if f.newer != none {
		return clock.Tmax
	}
	longest := time.Duration(0)
	for _, i := range f.index {
		longest = max(longest, f.session[i].T)
	}
	return longest
}

// claim folds a Claim at offset o. Each role of a Claim that is not fresh is judged by itself:
// the sender wins it if it is free, or if the sender had read all evidence of its holder. A fresh
// Claim is valid if its sender had read all evidence of every holder, since it has then waited
// for all of them. It wins all of its roles or none. The sender of a record of a newer version
// may hold any role, so a Claim is valid only if its sender had read that record; a valid Claim
// outlives it. claim appends the roles that were won, or taken from their holders, to changed.
func (f *fold) claim(r *Record, o int64, now clock.Instant, changed []int32) []int32 {
	if r.Read < f.newer {
		return changed
	}
	if r.Fresh {
		for _, i := range f.index {
			if r.Read < f.session[i].Last {
				return changed
			}
		}
		for role, token := range f.tokens {
			if token != none {
				changed = append(changed, int32(role))
			}
		}
		f.clear()
	}
	before := len(changed)
	won := changed[before:]
	for _, role := range r.Roles {
		if h := f.holderOf(role); h == nil || r.Read >= h.Last {
			won = append(won, role)
		}
	}
	if len(won) == 0 {
		return changed
	}
	f.setNewer(none)
	for _, role := range won {
		f.free(role)
	}
	f.grant(Holder{Session: r.Session, Name: r.Name, T: r.T, Last: o}, o, won, now)
	return append(changed[:before], won...)
}

// grant gives free roles to a session.
func (f *fold) grant(h Holder, token int64, roles []int32, now clock.Instant) {
	i, ok := f.index[h.Session]
	if !ok {
		i = f.enter(h)
	}
	f.session[i].held += len(roles)
	key := f.session[i].key
	if top := int(roles[len(roles)-1]); top >= len(f.tokens) {
		f.grow(top + 1)
	}
	for _, role := range roles {
		f.tokens[role], f.holders[role] = token, i
		f.hash += roleHash(role, token, key)
	}
	if g := f.grants[token]; g != nil { // a large Snapshot may list one token several times
		g.roles += len(roles)
		return
	}
	f.grants[token] = &grant{len(roles), now}
}

func (f *fold) grow(n int) {
	from := len(f.tokens)
	n = min(MaxRoles, max(n, from+from/2))
	f.tokens = slices.Grow(f.tokens, n-from)[:n]
	f.holders = slices.Grow(f.holders, n-from)[:n]
	for role := from; role < n; role++ {
		f.tokens[role] = none
	}
}

// enter adds a holder.
func (f *fold) enter(h Holder) int32 {
	s := session{Holder: h, key: sessionKey(h.Session)}
	i := int32(len(f.session))
	if n := len(f.unused); n > 0 {
		i, f.unused = f.unused[n-1], f.unused[:n-1]
		f.session[i] = s
	} else {
		f.session = append(f.session, s)
	}
	f.index[h.Session] = i
	f.hash += s.hash()
	return i
}

// free takes a role from its holder, if it has one, and forgets a holder that has no role left.
func (f *fold) free(role int32) {
	h := f.holderOf(role)
	if h == nil {
		return
	}
	token := f.tokens[role]
	f.hash -= roleHash(role, token, h.key)
	f.tokens[role] = none
	if g := f.grants[token]; g != nil {
		if g.roles--; g.roles == 0 {
			delete(f.grants, token)
		}
	}
	if h.held--; h.held == 0 {
		f.hash -= h.hash()
		f.ended = append(f.ended, h.Session)
		i := f.index[h.Session]
		delete(f.index, h.Session)
		f.session[i] = session{}
		f.unused = append(f.unused, i)
	}
}

// apply folds a record at offset o, by the same rules in every process. It reports whether the
// record is evidence, and appends to changed the roles whose holder or token is new.
func (f *fold) apply(r *Record, o int64, now clock.Instant, changed []int32) ([]int32, bool) {
	switch r.Kind {
	case Claim:
		changed = f.claim(r, o, now, changed)
	case Release:
		return f.release(r, changed), false
	case Beat, Snapshot, Hello, Ping, Pong:
	}
	return changed, r.Kind.evidential() && f.evidence(r.Session, o, now)
}

// evidential reports whether a record of this kind is evidence, provided that its session holds
// something after it. A process that does not know the fold cannot tell whether it does, and
// assumes so.
func (k Kind) evidential() bool { return k == Beat || k == Claim }

// folded reports whether the fold depends on records of this kind.
func (k Kind) folded() bool { return k.evidential() || k == Release }

// release folds a Release: the roles that it names by token and session become free. It is
// no evidence, since it may arrive late, after its session has died.
func (f *fold) release(r *Record, changed []int32) []int32 {
	for _, g := range r.Ended {
		for _, role := range g.Roles {
			if h := f.holderOf(role); h != nil && h.Session == r.Session && f.tokens[role] == g.Token {
				f.free(role)
				changed = append(changed, role)
			}
		}
	}
	return changed
}

// evidence folds a Beat or Claim of a session at o. If the session holds something, the offset
// becomes its Last, and evidence returns true.
func (f *fold) evidence(id Session, o int64, now clock.Instant) bool {
	s := f.find(id)
	if s == nil {
		return false
	}
	f.hash -= s.hash()
	s.Last, s.heard = o, now
	f.hash += s.hash()
	return true
}

// setNewer notes the newest record of a newer version.
func (f *fold) setNewer(o int64) {
	if f.newer != none {
		f.hash -= newerHash(f.newer)
	}
	if f.newer = o; o != none {
		f.hash += newerHash(o)
	}
}

// The hash of a fold is the sum of the hashes of its parts. So a change costs two hashes,
// and the order of the parts does not matter.

func mix(x uint64) uint64 { // the finalizer of SplitMix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func roleHash(role int32, token int64, holder uint64) uint64 {
	return mix(uint64(token)*0x9e3779b97f4a7c15 + uint64(role) + 1 ^ holder)
}

func newerHash(o int64) uint64 { return mix(uint64(o) ^ 0x6e65776572) }

func (s *session) hash() uint64 {
	return mix(mix(s.key^uint64(s.Last)*0x9e3779b97f4a7c15) + uint64(s.T))
}

// sessionKey hashes the id of a session: FNV-1a, the same in every process.
func sessionKey(id Session) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(id.Process) {
		h = (h ^ uint64(id.Process[i])) * 0x100000001b3
	}
	return mix(h + id.N*0x9e3779b97f4a7c15)
}
