//go:build unix

package show

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// term is what the looks of one member prove about one term of one role. A member leads without
// interruption as long as it has the same token. So the term lasted at least from the end of the first look
// that found it to the beginning of the last one.
type term struct {
	member string
	role   int
	token  int64
	from   time.Duration // after the first look
	to     time.Duration // before the last look; the first and only one if to < from
}

func (t term) String() string { return fmt.Sprintf("%s with token %d", t.member, t.token) }

// before reports whether t may have ended before u began.
func (t term) before(u term) bool { return t.to < u.from }

// history collects terms from sightings.
type history struct {
	terms []term
	index map[termKey]int
}

type termKey struct {
	member string
	role   int
	token  int64
}

func (h *history) add(member string, s Sighting) {
	key := termKey{member, s.Role, s.Token}
	if i, known := h.index[key]; known {
		h.terms[i].to = s.Before
		return
	}
	if h.index == nil {
		h.index = map[termKey]int{}
	}
	h.index[key] = len(h.terms)
	h.terms = append(h.terms, term{member: member, role: s.Role, token: s.Token, from: s.After, to: s.Before})
}

// of returns the terms of a role in the order in which they began.
func (h *history) of(role int) []term {
	terms := slices.DeleteFunc(slices.Clone(h.terms), func(t term) bool { return t.role != role })
	slices.SortFunc(terms, func(a, b term) int { return cmp.Compare(a.from, b.from) })
	return terms
}

// violations lists what must never happen: two leaders of one role at one
// instant, or a token that is not above those before it.
func (h *history) violations() []string {
	var found []string
	for role := range Roles {
		terms := h.of(role)
		for i, t := range terms {
			for _, u := range terms[i+1:] {
				switch {
				case !t.before(u) && !u.before(t):
					found = append(found, fmt.Sprintf("role %d: %v and %v led at the same time", role, t, u))
				case !u.before(t) && u.token <= t.token:
					found = append(found, fmt.Sprintf("role %d: %v led after %v", role, u, t))
				}
			}
		}
	}
	return found
}

// handover is a change of leader, or a new term of the same one.
type handover struct {
	from, to term
	gap      time.Duration // the longest possible time without a leader
}

// handovers returns all changes, in chronological order.
func (h *history) handovers() []handover {
	var all []handover
	for role := range Roles {
		terms := h.of(role)
		for i := 1; i < len(terms); i++ {
			all = append(all, handover{terms[i-1], terms[i], terms[i].from - terms[i-1].to})
		}
	}
	slices.SortStableFunc(all, func(a, b handover) int { return cmp.Compare(a.to.from, b.to.from) })
	return all
}
