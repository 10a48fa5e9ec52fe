package lease

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// join is what a process knows before it knows the fold. It becomes known by a
// Snapshot that reaches back to where it began, by a fresh Claim whose sender had read
// everything that this one has read of holders, or by its own fresh Claim after a
// silence that outlasts every lease there may be.
type join struct {
	from  int64         // s: where reading began
	busy  int64         // newest record that may be of a holder: a fresh Claim must have read it
	begun clock.Raw     // when s was known
	bound time.Duration // no holder that was not heard since has a larger T
	heard clock.Raw     // what was heard leads no more from then on
	kept  []entry       // what must be folded after a Snapshot
	since int64         // kept has everything from here on
	cost  int           // of kept, in records
	parts *parts
}

type entry struct {
	offset int64
	record *Record       // nil: of a newer version
	sent   clock.Instant // if it is the present session's: its stamp
}

// maxKept bounds what a process remembers while it does not know the fold, in records
// or in hundreds of roles. A Snapshot that would need more is not usable; another one
// comes.
const maxKept = 20_000

func newJoin(s int64, longest time.Duration, now clock.Instant) *join {
	return &join{from: s, since: s, busy: s - 1, begun: now.Raw, bound: longest}
}

func (j *join) freshAt(rho float64) clock.Raw {
	return max(clock.FreeAt(j.begun, j.bound, rho), j.heard)
}

// keep remembers a record that a Snapshot may have to be completed by. Those that no
// fold looks at are not kept.
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

// hear takes note of a record that may be of a holder whose lease is t.
func (j *join) hear(o int64, now clock.Instant, t time.Duration, rho float64) {
	j.busy = o
	j.heard = max(j.heard, clock.FreeAt(now.Raw, t, rho))
}

// limit takes note of the largest T of any holder, as a process says that knew the
// fold at read. It covers who holds something since before this process began; who
// has claimed later is heard. So it counts only if read reaches back to the beginning.
func (j *join) limit(r *Record) {
	if r.Longest != Unsaid && r.Read >= j.from-1 {
		j.bound = min(j.bound, r.Longest)
	}
}

// parts collects a Snapshot that comes in several records.
type parts struct {
	session Session
	read    int64
	state   State
	have    []bool
	missing int
	roles   int
}

// snapshot returns the whole of a Snapshot once its last part is here.
func (j *join) snapshot(r *Record) (State, bool) {
	s := r.State
	if s.Parts == 1 {
		return *s, true
	}
	p := j.parts
	if p == nil || p.session != r.Session || p.read != r.Read || p.state.Hash != s.Hash || len(p.have) != s.Parts {
		if p != nil && s.Part != 0 {
			return State{}, false // the rest of one whose beginning was missed
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
			j.parts = nil // no fold has so many
		}
		return State{}, false
	}
	j.parts = nil
	return p.state, true
}
