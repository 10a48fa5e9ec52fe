package elector

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
)

// numbering is how the roles of one of several shards are numbered.
type numbering struct {
	index int // of the shard
	of    int // the number of shards
}

// role returns the role with this number in the shard: j = p + M·u.
func (n numbering) role(local int32) int { return n.index + n.of*int(local) }

// units returns the roles with these numbers in the shard.
func (n numbering) units(local []int32) []int {
	out := make([]int, len(local))
	for i, u := range local {
		out[i] = n.role(u)
	}
	return out
}

// count returns how many of the first R roles are in the shard.
func (n numbering) count(roles int) int32 {
	return int32((max(0, roles-n.index) + n.of - 1) / n.of)
}

// holds is the roles of a shard that this process leads or gives up. It keeps the application's
// terms in the term table in step with them.
type holds struct {
	byRole[*hold]
	numbering numbering
	lease     holdings
	table     *term.Table
	tokenBase int64   // added to the tokens that the application gets
	over      []int32 // roles whose lapse the application was told of
}

// hold is what roles that this process holds by one Claim have in common. It does not change.
type hold struct {
	token int64
	cause cause
	since clock.Mono
	line  int // the line of V that the term follows
}

// cause is how this process got a role.
type cause int

const (
	claimed     cause = iota // it was vacant, or its holder left
	rebalanced               // its holder handed it over for balance
	transferred              // its holder handed it over by a Transfer: it stays
)

// tokenOf returns the token under which this process holds a role, or −1.
func (hs *holds) tokenOf(role int32) int64 {
	if h := hs.at(role); h != nil {
		return h.token
	}
	return -1
}

// difference is how the lease differs from what this process holds.
type difference struct {
	superseded []int32 // held roles that records have taken away
	lapsed     []int32 // held roles that are lost without such a record
	shifted    []int32 // held roles whose terms follow another line of V by now
	gained     wins    // roles that are held by a new term
	taken      []int32 // roles that nobody may claim
	free       []int32 // roles that may be claimed
}

// compare compares roles that may have changed with the roles held here. Holdings that remind of
// free roles do so for roles that are listed to be claimed already.
func (hs *holds) compare(changed []int32, listed func(int32) bool, now clock.Instant) (d difference) {
	for _, role := range changed {
		token, line, led := hs.lease.Term(role)
		h := hs.at(role)
		switch {
		case h != nil && (!led || h.token != token):
			if hs.lease.Outdone(role) {
				d.superseded = append(d.superseded, role)
			} else {
				d.lapsed = append(d.lapsed, role)
			}
			h = nil
		case h != nil && h.line != line:
			d.shifted = append(d.shifted, role)
		}
		switch {
		case led && h == nil:
			d.gained.add(token, role)
			d.taken = append(d.taken, role)
		case led || !hs.lease.Vacant(role, now):
			d.taken = append(d.taken, role)
		case !hs.lease.Reminds() || !listed(role):
			d.free = append(d.free, role)
		}
	}
	return d
}

// renew publishes V of all lines that terms follow. Ended terms were withdrawn before.
func (hs *holds) renew() {
	for line := range hs.lease.InUse() {
		v := hs.lease.V(line)
		if at, ok := hs.table.V(line); v != (clock.Instant{}) && (!ok || at != v) {
			hs.table.Renew(line, v)
		}
	}
}

// shift lets terms follow their current lines of V.
func (hs *holds) shift(roles []int32) {
	byLine := map[int][]int{}
	var from, to *hold
	for _, role := range roles {
		h := hs.at(role)
		if _, line, led := hs.lease.Term(role); led && h != nil && h.line != line {
			if from != h || to.line != line {
				moved := *h
				moved.line = line
				from, to = h, &moved
			}
			hs.set(role, to)
			byLine[line] = append(byLine[line], hs.numbering.role(role))
		}
	}
	for line, units := range byLine {
		hs.table.Shift(units, line)
	}
}

// gain begins the terms of roles won by one Claim; why says how this process got each of them.
func (hs *holds) gain(w won, why func(role int32) cause, now clock.Instant) {
	units := make([]int, 0, len(w.roles))
	var of *hold
	for _, role := range w.roles {
		if hs.has(role) {
			continue
		}
		if c := why(role); of == nil || of.cause != c {
			of = &hold{token: w.token, cause: c, since: now.Mono, line: hs.numbering.index}
		}
		hs.set(role, of)
		units = append(units, hs.numbering.role(role))
	}
	hs.table.Start(units, w.token, hs.tokenBase+w.token)
	hs.shift(w.roles)
}

// end ends the terms of roles.
func (hs *holds) end(roles []int32, why term.Reason) {
	if len(roles) == 0 {
		return
	}
	for _, role := range roles {
		hs.remove(role)
	}
	hs.table.End(hs.numbering.units(roles), why, false)
}

// delivered notes that the application was told of the end of a role's term.
func (hs *holds) delivered(role int32) {
	if hs.has(role) {
		hs.over = append(hs.over, role)
	}
}

// takeOver returns, once, the held roles that the application was told are over: they must not be
// led again, whatever the clocks show now.
func (hs *holds) takeOver() (roles []int32) {
	for _, role := range hs.over {
		if hs.table.Over(hs.numbering.role(role)) {
			roles = append(roles, role)
		}
	}
	hs.over = nil
	return roles
}

// evidence returns the oldest V of the lines that the terms follow; zero if nothing is held.
func (hs *holds) evidence(now clock.Instant) (oldest clock.Instant) {
	if hs.len() == 0 {
		return clock.Instant{}
	}
	for line := range hs.lease.InUse() {
		if v, ok := hs.table.V(line); ok && (oldest == (clock.Instant{}) || now.Age(v) > now.Age(oldest)) {
			oldest = v
		}
	}
	return oldest
}

// wins are roles that were won, by token.
type wins []won

// won is roles that were won by one Claim.
type won struct {
	token int64
	roles []int32
}

// add adds a role. Most roles have the same token as the one before.
func (w *wins) add(token int64, role int32) {
	i := len(*w) - 1
	if i < 0 || (*w)[i].token != token {
		if i = slices.IndexFunc(*w, func(x won) bool { return x.token == token }); i < 0 {
			i = len(*w)
			*w = append(*w, won{token: token})
		}
	}
	(*w)[i].roles = append((*w)[i].roles, role)
}

// byRole maps roles to values, in ascending order. It needs memory for the roles that it has, and
// at most half a byte for each other role. An access takes three times as long as with a slice;
// with a million roles that is a tenth of a map's time. The zero value is empty.
type byRole[V any] struct {
	pages []*rolePage[V]
	n     int
}

// rolePage has 64 blocks of 64 roles.
type rolePage[V any] struct {
	n      int
	blocks [64]roleBlock[V]
}

// roleBlock has a bit for each of its present roles, and their values, ascending.
type roleBlock[V any] struct {
	bits uint64
	of   []V
}

const pageRoles = 64 * 64

func (m *byRole[V]) len() int { return m.n }

func (m *byRole[V]) get(role int32) (v V, ok bool) {
	if i := int(role) / pageRoles; i < len(m.pages) && m.pages[i] != nil {
		b := &m.pages[i].blocks[role/64%64]
		if bit := uint64(1) << (role % 64); b.bits&bit != 0 {
			return b.of[bits.OnesCount64(b.bits&(bit-1))], true
		}
	}
	return v, false
}

// at returns the value of a role, or the zero value if the role is absent.
func (m *byRole[V]) at(role int32) V {
	v, _ := m.get(role)
	return v
}

func (m *byRole[V]) has(role int32) bool {
	i := int(role) / pageRoles
	return i < len(m.pages) && m.pages[i] != nil && m.pages[i].blocks[role/64%64].bits&(1<<(role%64)) != 0
}

func (m *byRole[V]) set(role int32, v V) {
	i := int(role) / pageRoles
	if more := i + 1 - len(m.pages); more > 0 {
		m.pages = append(m.pages, make([]*rolePage[V], more)...)
	}
	if m.pages[i] == nil {
		m.pages[i] = &rolePage[V]{}
	}
	p := m.pages[i]
	b := &p.blocks[role/64%64]
	bit := uint64(1) << (role % 64)
	at := bits.OnesCount64(b.bits & (bit - 1))
	if b.bits&bit != 0 {
		b.of[at] = v
		return
	}
	b.bits |= bit
	b.of = slices.Insert(b.of, at, v)
	m.n, p.n = m.n+1, p.n+1
}

func (m *byRole[V]) remove(role int32) {
	if !m.has(role) {
		return
	}
	i := int(role) / pageRoles
	p := m.pages[i]
	b := &p.blocks[role/64%64]
	bit := uint64(1) << (role % 64)
	at := bits.OnesCount64(b.bits & (bit - 1))
	b.bits &^= bit
	if b.of = slices.Delete(b.of, at, at+1); len(b.of) == 0 {
		b.of = nil
	}
	if m.n, p.n = m.n-1, p.n-1; p.n == 0 {
		m.pages[i] = nil
	}
}

// all yields all roles and values, ascending. The loop may set values, but not add or remove
// roles.
func (m *byRole[V]) all() iter.Seq2[int32, V] { return m.from(0) }

// from is all, beginning with a role.
func (m *byRole[V]) from(first int32) iter.Seq2[int32, V] {
	return func(yield func(int32, V) bool) {
		for i := int(first) / pageRoles; i < len(m.pages); i++ {
			if m.pages[i] == nil {
				continue
			}
			for k := range m.pages[i].blocks {
				b := &m.pages[i].blocks[k]
				base := int32(i*pageRoles + k*64)
				for left, at := b.bits, 0; left != 0; left, at = left&(left-1), at+1 {
					if role := base + int32(bits.TrailingZeros64(left)); role >= first && !yield(role, b.of[at]) {
						return
					}
				}
			}
		}
	}
}

// roles returns the present roles, ascending.
func (m *byRole[V]) roles() []int32 {
	out := make([]int32, 0, m.n)
	for role := range m.all() {
		out = append(out, role)
	}
	return out
}

// top returns the highest role, or −1 if there is none.
func (m *byRole[V]) top() int32 {
	for i, p := range slices.Backward(m.pages) {
		if p == nil {
			continue
		}
		for k := range slices.Backward(p.blocks[:]) {
			if b := p.blocks[k].bits; b != 0 {
				return int32(i*pageRoles + k*64 + bits.Len64(b) - 1)
			}
		}
	}
	return -1
}
