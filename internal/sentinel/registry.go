package sentinel

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

const (
	// MaxMembers bounds the members that are registered, and the dead that are remembered.
	MaxMembers = 10_000
	// maxGuards bounds the commands of one member whose guards are registered.
	maxGuards = 64
)

// Registry is who is registered. It is pure, and not safe for concurrent use.
type Registry struct {
	members map[string]*member
	limit   int
}

// member is a process that has registered.
type member struct {
	Registration
	inode  uint64
	fired  bool       // its pidfd has: it is dead
	at     clock.Mono // when that was noted
	guards int        // commands of which something may be left
}

// Death is a member that has died, and of whose commands nothing is left.
type Death struct {
	Place   Place
	Process string
	Name    string
	T       time.Duration
}

// NewRegistry returns an empty Registry of so many members at most.
func NewRegistry(limit int) *Registry {
	return &Registry{members: map[string]*member{}, limit: limit}
}

// Register takes a registration, after it has refused what is no proof. fresh is false if
// the same process has connected again: the file that came first is kept, as a process
// never gets another id.
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
		return false, errAnother // the dead do not register
	}
	m.Registration = reg
	if reg.Running {
		m.guards = max(m.guards, 1) // its guard talks to nobody here, perhaps: then only the member can clear it
	} else {
		m.guards = 0
	}
	return fresh, nil
}

// Goodbye forgets a member: it has given everything back. It reports whether there was one.
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

// Clear takes a guard's word that nothing is left of its command. It returns the death of its
// member if that was what it waited for.
func (r *Registry) Clear(process string) (Death, bool) {
	m := r.members[process]
	if m == nil || m.guards == 0 {
		return Death{}, false
	}
	m.guards--
	return r.settled(m)
}

// Fired notes that a member's pidfd has become readable. It returns its death, unless
// something may be left of its commands.
func (r *Registry) Fired(process string, now clock.Mono) (Death, bool) {
	m := r.members[process]
	if m == nil {
		return Death{}, false
	}
	m.fired, m.at = true, now
	return r.settled(m)
}

// Expire forgets the dead whose guards have been silent for so long that there is nothing
// to gain. It returns how many there were.
func (r *Registry) Expire(now clock.Mono) (n int) {
	for id, m := range r.members {
		if m.fired && now.Sub(m.at) >= remember(m.T) {
			delete(r.members, id)
			n++
		}
	}
	return n
}

// remember is for how long the dead are remembered: their Claims may be on their way.
func remember(t time.Duration) time.Duration { return max(2*t, 30*time.Minute) }

// settled returns a death that is complete, and forgets the member.
func (r *Registry) settled(m *member) (Death, bool) {
	if !m.fired || m.guards > 0 {
		return Death{}, false
	}
	delete(r.members, m.Process)
	return Death{Place: m.Place(), Process: m.Process, Name: m.Name, T: m.T}, true
}

// Members is how many members are registered.
func (r *Registry) Members() int { return len(r.members) }

// At yields the members of a place.
func (r *Registry) At(p Place) []string {
	var ids []string
	for id, m := range r.members {
		if m.Place() == p {
			ids = append(ids, id)
		}
	}
	return ids
}
