package sentinel

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

const (
	// MaxMembers bounds the registered members, and also the remembered dead.
	MaxMembers = 10_000
	// MaxOwned bounds the members that one process registers, and maxOwnedPlaces their groups, each of
	// which costs the sentinel a megabyte and 30 files. Without these bounds one process could leave no
	// room for others.
	MaxOwned       = 256
	maxOwnedPlaces = 32
	// maxGuards bounds the registered guards of one member.
	maxGuards = 64
)

// Registry holds the registered members. It does no I/O, and is not safe for concurrent use.
//
// A packet may be read long after it was sent, and packets of several connections in any order. Their
// sender may have given them up by then. So everything that a member says is about one of
// its registrations, which have numbers, and has no effect if that is not the newest one.
type Registry struct {
	members map[string]*member
	owned   map[owner]map[Place]int // how many of them each process has registered
	limit   int
	serial  uint64 // of the newest guard
}

// member is a registered process.
type member struct {
	Registration
	inode   uint64
	owner   owner      // zero: it could not be told
	fired   bool       // its pidfd has fired: the process is dead
	at      clock.Mono // when its death was noted
	guards  int        // registered guards of commands that may still run
	unknown bool       // a command may run whose guard has not registered
	since   uint64     // guards up to this serial registered before the member's present registration
}

// Death is the death of a member. None of its commands still runs.
type Death struct {
	Place   Place
	Process string
	Name    string
	T       time.Duration
}

// NewRegistry returns an empty Registry for at most limit members.
func NewRegistry(limit int) *Registry {
	return &Registry{members: map[string]*member{}, owned: map[owner]map[Place]int{}, limit: limit}
}

// Check returns the error that Register would return now.
func (r *Registry) Check(reg Registration, proof Proof) error {
	if err := reg.check(); err != nil {
		return err
	}
	if err := proof.check(); err != nil {
		return err
	}
	m := r.members[reg.Process]
	switch {
	case m == nil && len(r.members) >= r.limit:
		return errFull
	case m == nil:
		return r.affords(reg.Place(), proof)
	case m.inode != proof.Inode:
		return errAnother
	case m.fired:
		return errAnother // a dead process does not register
	case reg.Number <= m.Number:
		return errFormer
	case reg.Place() != m.Place():
		return r.affords(reg.Place(), proof)
	}
	return nil
}

// affords returns an error if a process has too many members for another one in a group.
func (r *Registry) affords(p Place, proof Proof) error {
	o, ok := proof.owner()
	if !ok {
		return nil
	}
	all := 0
	for _, n := range r.owned[o] {
		all += n
	}
	switch {
	case all >= MaxOwned:
		return errOwned
	case r.owned[o][p] == 0 && len(r.owned[o]) >= maxOwnedPlaces:
		return errGroups
	}
	return nil
}

// own adds n to the number of members that m's process has in m's group.
func (r *Registry) own(m *member, n int) {
	if m.owner == (owner{}) {
		return
	}
	of := r.owned[m.owner]
	if of == nil {
		of = map[Place]int{}
		r.owned[m.owner] = of
	}
	if of[m.Place()] += n; of[m.Place()] == 0 {
		delete(of, m.Place())
	}
	if len(of) == 0 {
		delete(r.owned, m.owner)
	}
}

// drop forgets a member, which may be nil.
func (r *Registry) drop(m *member) {
	if m != nil {
		delete(r.members, m.Process)
		r.own(m, -1)
	}
}

// Register adds a member, or updates it if the same process connects again: fresh is false then,
// and the caller keeps the first pidfd, which stays valid. Call it only once the member has confirmed
// the registration. It returns an error if the registration or its proof is bad, if another process has
// the id, if a later registration of the process is known, or if there are too many members.
func (r *Registry) Register(reg Registration, proof Proof) (fresh bool, err error) {
	if err := r.Check(reg, proof); err != nil {
		return false, err
	}
	m := r.members[reg.Process]
	if fresh = m == nil; fresh {
		m = &member{inode: proof.Inode}
		m.owner, _ = proof.owner()
		r.members[reg.Process] = m
	} else {
		r.own(m, -1) // its group may be another one now
	}
	m.Registration = reg
	r.own(m, 1)
	// Commands are counted anew. A guard of an earlier registration may still be about to clear its command,
	// and it must not clear another one.
	m.guards, m.since = 0, r.serial
	m.unknown = reg.Running // until the member says that its guards have registered
	return fresh, nil
}

// Goodbye forgets a member, which has released its roles itself. It reports whether the member was registered.
func (r *Registry) Goodbye(process string) bool {
	m := r.members[process]
	r.drop(m)
	return m != nil
}

// Guard notes a command that may outlive its member. It returns the serial of the command's guard.
func (r *Registry) Guard(g guardian) (serial uint64, err error) {
	if err := checkSecret(g.Process, g.Secret); err != nil {
		return 0, err
	}
	m := r.members[g.Process]
	switch {
	case m == nil || m.fired || m.Number != g.Number:
		return 0, errNoMember
	case m.guards >= maxGuards:
		return 0, errFull
	}
	m.guards++
	r.serial++
	return r.serial, nil
}

// Settled notes that guards have registered for all commands of a member's registration. It returns the
// death if the member is dead and no command is left.
func (r *Registry) Settled(process string, number uint64) (Death, bool) {
	m := r.members[process]
	if m == nil || m.Number != number {
		return Death{}, false
	}
	m.unknown = false
	return r.settled(m)
}

// Clear notes that nothing is left of the command of a guard. If the member is dead and this was its
// last command, Clear returns the death. It does nothing if the member has registered since the guard
// did. Call it at most once for each guard.
func (r *Registry) Clear(process string, serial uint64) (Death, bool) {
	m := r.members[process]
	if m == nil || serial <= m.since {
		return Death{}, false
	}
	m.guards--
	return r.settled(m)
}

// Fired notes that a member's pidfd has become readable. number is the registration over whose
// connection the caller has read everything that the member sent. stale reports that there is a later
// one: then nothing is noted, and the caller reads that one's connection first. Otherwise Fired returns
// the death, unless a command of the member may still run.
func (r *Registry) Fired(process string, number uint64, now clock.Mono) (d Death, over, stale bool) {
	m := r.members[process]
	switch {
	case m == nil:
		return Death{}, false, false
	case m.Number != number:
		return Death{}, false, true
	}
	m.fired, m.at = true, now
	d, over = r.settled(m)
	return d, over, false
}

// Expire forgets dead members whose guards never cleared. By then their leases have long ended. It
// returns how many it has forgotten.
func (r *Registry) Expire(now clock.Mono) (n int) {
	for _, m := range r.members {
		if m.fired && now.Sub(m.at) >= remember(m.T) {
			r.drop(m)
			n++
		}
	}
	return n
}

// remember returns how long a dead process is remembered: its Claims may still be under way.
func remember(t time.Duration) time.Duration { return max(2*t, 30*time.Minute) }

// settled returns the death of a dead member without commands, and forgets the member.
func (r *Registry) settled(m *member) (Death, bool) {
	if !m.fired || m.guards > 0 || m.unknown {
		return Death{}, false
	}
	r.drop(m)
	return Death{Place: m.Place(), Process: m.Process, Name: m.Name, T: m.T}, true
}

// Members returns the number of registered members.
func (r *Registry) Members() int { return len(r.members) }

// ready reports whether a death of the member would be acted on once its registered guards have cleared.
func (m *member) ready() bool { return !m.fired && !m.unknown }

// at returns the members of a place.
func (r *Registry) at(p Place) []*member {
	var all []*member
	for _, m := range r.members {
		if m.Place() == p {
			all = append(all, m)
		}
	}
	return all
}
