package lease

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/goneli/neli/internal/clock"
)

const (
	// maxBody bounds the bytes that lists of roles and holders may take in a record, as size
	// counts them. The rest is for the fields that all records have.
	maxBody = MaxRecord * 3 / 4
	// maxListed bounds the roles that a record may name, since a reader expands its ranges.
	maxListed = 10 * MaxClaim
)

// size is the largest number of bytes that a grant of these roles may take on the wire.
func size(roles []int32) int {
	n := 0
	runs(roles, func(int32, int32) { n++ })
	if n <= fewRanges {
		return 64 + 14*n
	}
	return 64 + 6*n // base64 of two varints a range, four bytes at most but for 61 wide gaps
}

// chunks yields lists of grants of the given roles (ascending), each small enough for a
// record. Roles with one token share a grant.
func (l *Lease) chunks(roles []int32) iter.Seq[[]Grant] {
	return func(yield func([]Grant) bool) {
		byToken := l.fold.byToken(roles)
		var part []Grant
		filled, listed := 0, 0
		for len(byToken) > 0 {
			token := l.fold.tokens[byToken[0]]
			n := 1
			for n < len(byToken) && n < MaxClaim && l.fold.tokens[byToken[n]] == token {
				n++
			}
			cost := size(byToken[:n])
			if filled > 0 && (filled+cost > maxBody || listed+n > maxListed) {
				if !yield(part) {
					return
				}
				part, filled, listed = nil, 0, 0
			}
			part = append(part, Grant{Token: token, Roles: slices.Clone(byToken[:n])})
			filled, listed = filled+cost, listed+n
			byToken = byToken[n:]
		}
		if len(part) > 0 {
			yield(part)
		}
	}
}

// Snapshot makes the records of a Snapshot. It returns nil if the fold is not known.
func (l *Lease) Snapshot(now clock.Instant) []Record {
	if l.join != nil {
		return nil
	}
	states := l.states()
	out := make([]Record, len(states))
	for i, s := range states {
		s.Part, s.Parts, s.Hash, s.Newer = i, len(states), l.fold.hash, l.fold.newer
		out[i] = l.record(Snapshot, now)
		out[i].State = s
	}
	return out
}

// states returns the fold in parts, each of which fits into a record.
func (l *Lease) states() []*State {
	f := &l.fold
	roles := make([][]int32, len(f.session))
	for role, token := range f.tokens {
		if token != none {
			i := f.holders[role]
			roles[i] = append(roles[i], int32(role))
		}
	}
	var holders []int32
	for _, i := range f.index {
		holders = append(holders, i)
	}
	slices.SortFunc(holders, func(a, b int32) int {
		x, y := f.session[a].Session, f.session[b].Session
		return cmp.Or(cmp.Compare(x.Process, y.Process), cmp.Compare(x.N, y.N))
	})
	parts := []*State{{}}
	filled, listed := 0, 0
	for _, i := range holders {
		for grants := range l.chunks(roles[i]) {
			h := &f.session[i].Holder
			cost, n := 128+6*(len(h.Name)+len(h.Session.Process)), 0 // JSON writes some bytes as six
			for _, g := range grants {
				cost, n = cost+size(g.Roles), n+len(g.Roles)
			}
			if filled > 0 && (filled+cost > maxBody || listed+n > maxListed) {
				parts, filled, listed = append(parts, &State{}), 0, 0
			}
			s := parts[len(parts)-1]
			for _, g := range grants {
				g.Holder = int32(len(s.Holders))
				s.Grants = append(s.Grants, g)
			}
			s.Holders = append(s.Holders, f.session[i].Holder)
			filled, listed = filled+cost, listed+n
		}
	}
	return parts
}

// byToken sorts roles by token, and keeps the order of roles with the same token. It counts
// instead of comparing, since a million roles usually have a hundred tokens.
func (f *fold) byToken(roles []int32) []int32 {
	next := map[int64]int{} // how many roles a token has; then where its next role goes
	last, count := none, 0
	for _, role := range roles {
		if token := f.tokens[role]; token != last {
			next[last] += count
			last, count = token, 0
		}
		count++
	}
	next[last] += count
	at := 0
	for _, token := range slices.Sorted(maps.Keys(next)) {
		next[token], at = at, at+next[token]
	}
	out := make([]int32, len(roles))
	last, at = none, 0
	for _, role := range roles {
		if token := f.tokens[role]; token != last {
			next[last] = at
			last, at = token, next[token]
		}
		out[at] = role
		at++
	}
	return out
}
