package elector

import (
	"iter"
	"math/bits"
	"slices"
)

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
