package lease

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// join is the state of a process until it knows the fold. The process learns the fold from a
// Snapshot whose sender had read up to where this process began; from a fresh Claim, its own or
// another's, whose sender had also read all holders' records since; or from an own record in a log
// that it reads from its origin.
type join struct {
	from  int64         // s: where reading began
	busy  int64         // newest record whose sender may be a holder: a valid fresh Claim must have read it
	begun clock.Raw     // when s was known
	bound time.Duration // no holder that has been silent since begun has a larger T
	over  clock.Raw     // when the leases of all senders heard so far are over
	kept  []entry       // records to fold after a Snapshot
	since int64         // kept is complete from this offset on
	cost  int           // memory that kept takes, in records
	parts *parts
}

type entry struct {
	offset int64
	record *Record       // nil if it is of a newer version
	sent   clock.Instant // the stamp, if the present session appended it
}

// maxKept bounds the records kept while the fold is not known. A record, and each grant of a Release,
// counts as one, and as one more for every hundred roles. A Snapshot that needs a dropped record is
// not used; another one will come.
const maxKept = 20_000

func newJoin(s int64, longest time.Duration, now clock.Instant) *join {
	return &join{from: s, since: s, busy: s - 1, begun: now.Raw, bound: longest}
}

func (j *join) freshAt(rho float64) clock.Raw {
	return max(clock.FreeAt(j.begun, j.bound, rho), j.over)
}

// keep keeps a record for folding after a Snapshot. It drops records that no fold depends on.
func (j *join) keep(e entry) {
	if r := e.record; r != nil && !r.Kind.folded() {
		return
	}
	j.kept = append(j.kept, e)
	for j.cost += e.cost(); j.cost > maxKept && len(j.kept) > 0; {
		j.cost -= j.kept[0].cost()
		j.since = j.kept[0].offset + 1
		j.kept = j.kept[1:]
	}
}

func (e entry) cost() int {
	c := 1
	if e.record != nil {
		c += len(e.record.Roles) / 100
		for _, g := range e.record.Ended {
			c += 1 + len(g.Roles)/100
		}
	}
	return c
}

// hear notes a record whose sender may hold roles with a lease of t.
func (j *join) hear(o int64, now clock.Instant, t time.Duration, rho float64) {
	j.busy = o
	j.over = max(j.over, clock.FreeAt(now.Raw, t, rho))
}

// limit notes the largest T of any holder, as stated by a process that knew the fold at
// offset r.Read. It covers the holders from before this process began; this process has
// heard all later ones itself. So it counts only if r.Read reaches up to where this process began.
func (j *join) limit(r *Record) {
	if r.Longest != Unsaid && r.Read >= j.from-1 {
		j.bound = min(j.bound, r.Longest)
	}
}

// parts collects the records of a Snapshot.
type parts struct {
	session Session
	read    int64
	state   State
	have    []bool
	missing int
	roles   int
}

// snapshot adds a part of a Snapshot, and returns the whole once all parts are here.
func (j *join) snapshot(r *Record) (State, bool) {
	s := r.State
	if s.Parts == 1 {
		return *s, true
	}
	p := j.parts
	if p == nil || p.session != r.Session || p.read != r.Read || p.state.Hash != s.Hash || len(p.have) != s.Parts {
		if p != nil && s.Part != 0 {
			return State{}, false // its first part was missed
		}
		p = &parts{session: r.Session, read: r.Read, have: make([]bool, s.Parts), missing: s.Parts,
			state: State{Parts: 1, Hash: s.Hash, Newer: s.Newer}}
		j.parts = p
	}
	if p.have[s.Part] {
		return State{}, false
	}
	p.have[s.Part] = true
	base := int32(len(p.state.Holders))
	p.state.Holders = append(p.state.Holders, s.Holders...)
	for _, g := range s.Grants {
		p.roles += len(g.Roles)
		g.Holder += base
		p.state.Grants = append(p.state.Grants, g)
	}
	if p.missing--; p.missing > 0 {
		if p.roles > MaxRoles || len(p.state.Holders) > MaxRoles {
			j.parts = nil // more roles than a log may have
		}
		return State{}, false
	}
	j.parts = nil
	return p.state, true
}
