package placement

import (
	"cmp"
	"slices"
)

// Holders that are no candidates.
const (
	// Nobody holds the role, or should: there is no candidate for it.
	Nobody = -1
	// Unknown holds the role: a process that is not among the candidates.
	Unknown = -2
)

const (
	// MaxRank bounds [Plan.Rank]: nobody has to wait for more than so many others.
	MaxRank = 16
	// MaxRoles bounds what a candidate may announce; more counts as MaxRoles.
	MaxRoles = 1 << 20
)

// Candidate is a process that may lead.
type Candidate struct {
	// ID names the process, and is unique.
	ID string
	// Priority is how much it is wanted: the higher the better.
	Priority int
	// Prefs is that by role, in place of Priority; nil without a Preference. Roles
	// beyond its length have Priority. It is read, never written, for as long as the
	// Plan is in use.
	Prefs []int32
	// Roles is the number of roles as this process announced it: it wants those below.
	Roles int
	// Steady: it has been there for long enough to be given what another one leads.
	Steady bool
	// Soon: it is not steady, but there is reason to expect that it soon will be.
	Soon bool
}

// prefers returns how much the candidate is wanted on a role that it wants.
func (c *Candidate) prefers(role int) int {
	if role < len(c.Prefs) {
		return int(c.Prefs[role])
	}
	return c.Priority
}

// Plan is what follows from who is there. It is immutable and may be used by several
// goroutines at a time. Candidates are named by their index, ascending by ID.
type Plan struct {
	who    []Candidate
	hash   []uint64   // of their ids
	roles  int        // the largest number that any of them announced
	mask   int        // buckets − 1
	all    *partition // by who deserves a role among all
	steady *partition // among those that are steady
}

// New makes the plan of these candidates, in whatever order they come; of several with
// the same ID the first counts.
//
// It takes O(n log n) for n candidates; with a Preference among them O(n · R), R being
// the largest number of roles that one of them announced, and keeps 8 or 16 bytes a role.
func New(candidates []Candidate) *Plan {
	p := &Plan{who: slices.Clone(candidates)}
	slices.SortStableFunc(p.who, func(a, b Candidate) int { return cmp.Compare(a.ID, b.ID) })
	p.who = slices.CompactFunc(p.who, func(a, b Candidate) bool { return a.ID == b.ID })
	p.hash = make([]uint64, len(p.who))
	steady := make([]int32, 0, len(p.who))
	for i := range p.who {
		w := &p.who[i]
		w.Roles = min(max(w.Roles, 0), MaxRoles)
		p.roles = max(p.roles, w.Roles)
		p.hash[i] = hashID(w.ID)
		if w.Steady {
			steady = append(steady, int32(i))
		}
	}
	p.mask = bucketsFor(len(p.who)) - 1
	p.all = p.classify(p.everybody())
	p.steady = p.all
	if len(steady) < len(p.who) {
		p.steady = p.classify(steady)
	}
	return p
}

// Len returns the number of candidates.
func (p *Plan) Len() int { return len(p.who) }

// Buckets returns the number of buckets. Roles of the same bucket, those equal modulo
// this number, have the same order of candidates.
func (p *Plan) Buckets() int { return p.mask + 1 }

// Candidate returns a candidate by its index.
func (p *Plan) Candidate(i int) Candidate { return p.who[i] }

// Find returns the index of a candidate, or Unknown.
func (p *Plan) Find(id string) int {
	i, ok := slices.BinarySearchFunc(p.who, id, func(c Candidate, id string) int { return cmp.Compare(c.ID, id) })
	if !ok {
		return Unknown
	}
	return i
}

// Rank returns how many candidates should claim a vacant role before this one does:
// none before first, which [Plan.Assign] chose; behind it all others by preference, and
// by rendezvous hashing where that is equal. It is MaxRank at most, and for who is no
// candidate or does not want the role. Without a first nobody comes first, and the
// ranks begin with 1.
//
// It takes O(n), mostly much less: it stops at MaxRank.
func (p *Plan) Rank(candidate, first, role int) int {
	switch {
	case candidate < 0 || candidate >= len(p.who) || role < 0 || role >= p.who[candidate].Roles:
		return MaxRank
	case candidate == first:
		return 0
	}
	bucket := hashBucket(role & p.mask)
	mine, top := p.who[candidate].prefers(role), score(p.hash[candidate], bucket)
	n := 1
	for i := range p.who {
		w := &p.who[i]
		if i == candidate || i == first || role >= w.Roles {
			continue
		}
		v := w.prefers(role)
		if v < mine {
			continue
		}
		if s := score(p.hash[i], bucket); v > mine || s > top || s == top && i < candidate {
			if n++; n >= MaxRank {
				return MaxRank
			}
		}
	}
	return n
}

// everybody returns the indices of all candidates.
func (p *Plan) everybody() []int32 {
	out := make([]int32, len(p.who))
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// heldBy returns who holds a role: a candidate's index, or something below zero.
func (p *Plan) heldBy(holders []int32, role int) int {
	if role >= len(holders) || int(holders[role]) >= len(p.who) {
		return Unknown
	}
	return int(holders[role])
}
