package sentinel

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

const (
	// MaxMembers bounds the registered members, and also the remembered dead.
	MaxMembers = 10_000
	// maxGuards bounds the registered guards of one member.
	maxGuards = 64
)

// Registry holds the registered members. It does no I/O, and is not safe for concurrent use.
type Registry struct {
	members map[string]*member
	limit   int
}

// member is a registered process.
type member struct {
	Registration
	inode  uint64
	fired  bool       // its pidfd has fired: the process is dead
	at     clock.Mono // when its death was noted
	guards int        // commands that may still run
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
	return &Registry{members: map[string]*member{}, limit: limit}
}

// Register adds a member, or updates it if the same process connects again: fresh is false then,
// and the caller keeps the first pidfd, which stays valid. It returns an error if the registration
// or its proof is bad, if another process has the id, or if there are too many members.
func (r *Registry) Register(reg Registration, proof Proof) (fresh bool, err error) {
	if err := reg.check(); err != nil {
		return false, err
	}
	if err := proof.check(); err != nil {
		return false, err
	}
	m := r.members[reg.Process]
	switch {
	case m == nil && len(r.members) >= r.limit:
		return false, errFull
	case m == nil:
		m = &member{inode: proof.Inode}
		r.members[reg.Process] = m
		fresh = true
	case m.inode != proof.Inode:
		return false, errAnother
	case m.fired:
		return false, errAnother // a dead process does not register
	}
	m.Registration = reg
	if reg.Running {
		m.guards = max(m.guards, 1) // the guard may have no connection here: then only the member can clear it
	} else {
		m.guards = 0
	}
	return fresh, nil
}

// Goodbye forgets a member, which has released its roles itself. It reports whether the member was
// registered.
func (r *Registry) Goodbye(process string) bool {
	_, known := r.members[process]
	delete(r.members, process)
	return known
}

// Guard notes a command that may outlive its member.
func (r *Registry) Guard(process, secret string) error {
	if err := checkSecret(process, secret); err != nil {
		return err
	}
	m := r.members[process]
	switch {
	case m == nil || m.fired:
		return errNoMember
	case m.guards >= maxGuards:
		return errFull
	}
	m.guards++
	return nil
}

// Clear notes that nothing is left of one command of a member. If the member is dead and this was
// its last command, Clear returns the death.
func (r *Registry) Clear(process string) (Death, bool) {
	m := r.members[process]
	if m == nil || m.guards == 0 {
		return Death{}, false
	}
	m.guards--
	return r.settled(m)
}

// Fired notes that a member's pidfd has become readable. It returns the death, unless a command of
// the member may still run.
func (r *Registry) Fired(process string, now clock.Mono) (Death, bool) {
	m := r.members[process]
	if m == nil {
		return Death{}, false
	}
	m.fired, m.at = true, now
	return r.settled(m)
}

// Expire forgets dead members whose guards never cleared. By then their leases have long ended. It
// returns how many it has forgotten.
func (r *Registry) Expire(now clock.Mono) (n int) {
	for id, m := range r.members {
		if m.fired && now.Sub(m.at) >= remember(m.T) {
			delete(r.members, id)
			n++
		}
	}
	return n
}

// remember returns how long a dead process is remembered: its Claims may still be under way.
func remember(t time.Duration) time.Duration { return max(2*t, 30*time.Minute) }

// settled returns the death of a dead member without commands, and forgets the member.
func (r *Registry) settled(m *member) (Death, bool) {
	if !m.fired || m.guards > 0 {
		return Death{}, false
	}
	delete(r.members, m.Process)
	return Death{Place: m.Place(), Process: m.Process, Name: m.Name, T: m.T}, true
}

// Members returns the number of registered members.
func (r *Registry) Members() int { return len(r.members) }

// At returns the process ids of the members of a place.
func (r *Registry) At(p Place) []string {
	var ids []string
	for id, m := range r.members {
		if m.Place() == p {
			ids = append(ids, id)
		}
	}
	return ids
}
