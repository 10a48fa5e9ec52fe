package lease

import "github.com/goneli/neli/internal/clock"

// A process that has died leads nothing, so anybody may give back what it holds. The
// proof of death is the caller's (package sentinel). A Release is no evidence and names
// its token, so one that comes late, twice or for nothing does no harm.

// foreign is added to the numbers of what is said in another process's name: that one
// has never used such a number, so a record of its own is not taken for this one.
const foreign = 1 << 52

// ReleaseOf makes the Releases of those of the given roles (ascending) that a session of
// another process holds by the fold, nil if the fold is not known. That process must be
// dead: if it lives, there are two leaders until it reads them.
func (l *Lease) ReleaseOf(id Session, roles []int32, now clock.Instant) []Record {
	if l.join != nil || id.Process == l.rules.Process {
		return nil
	}
	out := l.release(roles, id, now)
	for i := range out {
		out[i].Seq += foreign
	}
	return out
}

// Farewell makes the Hello by which a process that has died takes its leave: the others
// then plan without it. name is for people.
func (l *Lease) Farewell(process, name string, now clock.Instant) Record {
	r := l.record(Hello, now)
	r.Session, r.Name, r.Seq = Session{process, foreign}, clip(name), r.Seq+foreign
	r.Hello = &Announcement{Wants: []int{}, Leaving: true}
	return r
}
