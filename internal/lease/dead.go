package lease

import "github.com/goneli/neli/internal/clock"

// A process that has died leads nothing, so any process may release its roles. The caller has to
// prove the death (package sentinel). A Release is no evidence, and it names a token, so one that
// arrives late, twice or needlessly does no harm.

// foreign is added to the sequence numbers of records written in another process's name. That
// process never uses such numbers, so it never mistakes these records for its own.
const foreign = 1 << 52

// ReleaseOf makes Releases of those of the given roles (ascending) that a session of another
// process holds in the fold. It returns nil if the fold is not known. That process must be dead:
// if it lives, there can be two leaders until it reads the Releases.
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

// Farewell makes the Hello that says goodbye for a process that has died. The others then plan
// without it. name is for people.
func (l *Lease) Farewell(process, name string, now clock.Instant) Record {
	r := l.record(Hello, now)
	r.Session, r.Name, r.Seq = Session{process, foreign}, clip(name), r.Seq+foreign
	r.Hello = &Announcement{Wants: []int{}, Leaving: true}
	return r
}
