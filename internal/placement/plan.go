package placement

import (
	"cmp"
	"slices"
)

// Values for holders that are not candidates.
const (
	// Nobody means that the role has no holder, or that no candidate wants it.
	Nobody = -1
	// Unknown means that the holder is a process that is not a candidate.
	Unknown = -2
)

const (
	// MaxRank bounds [Plan.Rank]: no candidate waits for more than this many others.
	MaxRank = 16
	// MaxRoles bounds the number of roles that a candidate may announce. A larger number counts as MaxRoles.
	MaxRoles = 1 << 20
)

// Candidate is a process that may lead.
type Candidate struct {
	// ID names the process, and is unique.
	ID string
	// Priority orders candidates: the highest is preferred.
	Priority int
	// Prefs is the preference by role, which replaces Priority; nil if there is none. Roles beyond
	// its length have Priority. It must not be written to while the Plan is in use.
	Prefs []int32
	// Roles is the number of roles that this process announced: it wants the roles below.
	Roles int
	// Max is the most roles that it wants to lead; 0: no limit. Others get what exceeds it. If all have
	// as many as they want, it gets more.
	Max int
	// Steady says that it has been present long enough to take over other candidates' roles.
	Steady bool
	// Soon says that it is not steady yet but probably soon will be.
	Soon bool
}

// prefers returns the candidate's preference for a role that it wants.
func (c *Candidate) prefers(role int) int {
	if role < len(c.Prefs) {
		return int(c.Prefs[role])
	}
	return c.Priority
}

// Plan places roles on a given set of candidates. It is immutable and safe for concurrent
// use. Candidates are named by their index, ascending by ID.
type Plan struct {
	who    []Candidate
	hash   []uint64 // of their ids
	roles  int      // the largest number that any of them announced
	mask   int      // buckets − 1
	all    *classes // classes by all candidates
	steady *classes // classes by the steady ones; with caps or weights, nil
	capped bool     // some have caps

	weights *Weights           // nil: all roles weigh the same
	toward  func(role int) int // as in Toward, or nil
}

// New makes the plan of these candidates, given in any order. Of several with the same ID, the
// first counts.
//
// It takes O(n log n + n · m) for n candidates that announce m numbers of roles. If any has Prefs or
// Max, it takes O(n · R), R being the largest of these, and keeps 8 or 16 bytes for each role.
func New(candidates []Candidate) *Plan { return Weighted(candidates, nil) }

// Weighted is New for roles with weights; nil: all weigh the same. With weights it keeps 8 bytes for each role, and
// Assign and Moves sum weights where they would otherwise count roles. Caps count roles.
func Weighted(candidates []Candidate, weights *Weights) *Plan {
	p := &Plan{who: slices.Clone(candidates), weights: weights}
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
	if p.capped = capped(p.who); p.capped || weights != nil {
		if p.all = p.classifyAlike(); weights != nil {
			p.all.heaviestFirst(weights)
		}
		return p
	}
	p.all = p.classify(p.everybody())
	p.steady = p.all
	if len(steady) < len(p.who) {
		p.steady = p.classify(steady)
	}
	return p
}

// Toward returns the same plan, but of equally good roles its Moves and Level give a taker those for which first
// returns this taker. No candidate gets more roles by that. first returns Nobody for a role that any taker may get.
// With weights, roles are equally good if they weigh the same.
func (p *Plan) Toward(first func(role int) int) *Plan {
	q := *p
	q.toward = first
	return &q
}

// Len returns the number of candidates.
func (p *Plan) Len() int { return len(p.who) }

// Buckets returns the number of buckets. Roles that are equal modulo this number share a
// bucket, and have the same order of candidates.
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

// Rank returns how many candidates should claim a vacant role before the given candidate. first,
// which [Plan.Assign] chose, has rank 0. All others follow by preference, and by rendezvous
// hashing where preferences are equal. The rank is at most MaxRank. A process that is not a
// candidate, or does not want the role, has MaxRank. If there is no first, ranks begin with 1.
//
// It takes O(n), and usually much less, since it stops at MaxRank.
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

// heldBy returns the holder of a role: a candidate's index, or a number below zero.
func (p *Plan) heldBy(holders []int32, role int) int {
	if role >= len(holders) || int(holders[role]) >= len(p.who) {
		return Unknown
	}
	return int(holders[role])
}
