package elector

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
)

// Status is what this process knows about the holder of a role.
type Status int

// Unknown: not enough was read yet, or nothing of the holder since this process started. Vacant:
// no process holds it, or its holder's lease is over by any clock. Held: evidence of the holder was
// read less than T′ ago.
const (
	Unknown Status = iota
	Vacant
	Held
)

// Standing is what is known of roles of one partition that have the same holder and token, or no
// holder.
type Standing struct {
	Partition int
	Status    Status
	Roles     []int // ascending
	Holder    lease.Grantee
}

// A Standing is identified by its token, or by one of these.
const (
	unknownToken = int64(-2)
	vacantToken  = int64(-1)
)

// Holder returns the known holder of a role.
func (n *Node) Holder(role int, now clock.Instant) (lease.Grantee, bool) {
	if len(n.shards) == 0 {
		return lease.Grantee{}, false
	}
	s, local := n.local(role)
	token, g := s.standing(local, now)
	return g, token >= 0
}

// Share is how many roles a process is known to hold.
type Share struct {
	Process, Name string
	Roles         int
}

// Shares returns how many roles each process holds, the largest number first. Its cost depends on
// the number of holders, not of roles.
func (n *Node) Shares(now clock.Instant) []Share {
	held := map[string]int{}
	for _, s := range n.shards {
		for h := range s.lease.Holders() {
			if now.Raw < h.FreeAt && !s.old(h.Last) {
				held[h.Session.Process] += h.Held
			}
		}
	}
	var out []Share
	for process, roles := range held {
		s := Share{Process: process, Roles: roles}
		if process == n.set.Process {
			s.Name = n.set.Name
		} else {
			s.Name = n.members.NameOf(process)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Roles, a.Roles), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Process, b.Process))
	})
	return out
}

// Members returns the processes that have written something since this process started, and this
// one unless it is an observer.
func (n *Node) Members(now clock.Instant) []roster.Member {
	n.members.Expire(now, n.planner.Forget)
	out := n.members.All()
	if !n.set.Observer {
		out = append(out, roster.Member{Name: n.set.Name, Process: n.set.Process, Self: true, Priority: n.set.Priority, Roles: n.desired.Roles,
			Nominated: n.mayClaim(now), Heard: now})
	}
	return out
}

// mayClaim reports whether this process may claim some roles.
func (k *common) mayClaim(now clock.Instant) bool {
	wants := k.wants(now)
	return wants == nil || len(wants) > 0
}

// shown is what Members and Busy depend on, and which roles there are.
type shown struct {
	shards, roles  int
	members        uint64
	mayClaim, busy bool
}

// changed reports whether Holder, Standings, Members or Busy may answer differently than at the
// last call. That follows from counters and states that are kept where these things change, so
// nobody who changes one of them can forget to announce it.
func (n *Node) changed(now clock.Instant) bool {
	is := shown{len(n.shards), n.desired.Roles, n.members.Changes(), n.mayClaim(now), n.Busy(now)}
	changed := is != n.shown
	n.shown = is
	for _, s := range n.shards {
		if is := s.basis(s.claims.Silences(), now); is != s.shown {
			s.shown, changed = is, true
		}
	}
	return changed
}

// standings is what this process knows of the holders of a shard's roles.
type standings struct {
	lease   leases     // who holds what
	logs    []*channel // that say so
	unheard unheard    // holders that were not heard since reading began
	shown   basis      // of the standings when they were last announced
}

// standing returns what is known of a role at time now. Silence is measured as by a process that
// would claim.
func (s *standings) standing(local int32, now clock.Instant) (token int64, g lease.Grantee) {
	if !s.lease.Known() {
		return unknownToken, g
	}
	g, held := s.lease.Holder(local)
	if held && now.Raw < g.FreeAt {
		if s.old(g.Last) {
			return unknownToken, g // it was in the log before this process started; nobody knows for how long
		}
		return s.lease.Tenure(g), g
	}
	if now.Raw < s.lease.FreeAt(local) || !caughtUp(s.logs) { // a member of a newer version may hold it, or a later record may show a holder
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
		}, func(local, yes int32) {
			if yes == 1 {
				roles = append(roles, local)
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
