package byrole

import (
	"iter"
	"math/bits"
	"slices"
)

// Map maps roles to values, in ascending order. It needs memory for the roles that it has, and
// at most 0.6 bytes for each other role. An access takes three times as long as with a slice;
// with a million roles that is a tenth of a map's time. The zero value is empty.
type Map[V any] struct {
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

func (m *Map[V]) Len() int { return m.n }

func (m *Map[V]) get(local int32) (v V, ok bool) {
	if i := int(local) / pageRoles; i < len(m.pages) && m.pages[i] != nil {
		b := &m.pages[i].blocks[local/64%64]
		if bit := uint64(1) << (local % 64); b.bits&bit != 0 {
			return b.of[bits.OnesCount64(b.bits&(bit-1))], true
		}
	}
	return v, false
}

// At returns the value of a role, or the zero value if the role is absent.
func (m *Map[V]) At(local int32) V {
	v, _ := m.get(local)
	return v
}

func (m *Map[V]) Has(local int32) bool {
	i := int(local) / pageRoles
	return i < len(m.pages) && m.pages[i] != nil && m.pages[i].blocks[local/64%64].bits&(1<<(local%64)) != 0
}

func (m *Map[V]) Set(local int32, v V) {
	i := int(local) / pageRoles
	if more := i + 1 - len(m.pages); more > 0 {
		m.pages = append(m.pages, make([]*rolePage[V], more)...)
	}
	if m.pages[i] == nil {
		m.pages[i] = &rolePage[V]{}
	}
	p := m.pages[i]
	b := &p.blocks[local/64%64]
	bit := uint64(1) << (local % 64)
	at := bits.OnesCount64(b.bits & (bit - 1))
	if b.bits&bit != 0 {
		b.of[at] = v
		return
	}
	b.bits |= bit
	b.of = slices.Insert(b.of, at, v)
	m.n, p.n = m.n+1, p.n+1
}

func (m *Map[V]) Remove(local int32) {
	if !m.Has(local) {
		return
	}
	i := int(local) / pageRoles
	p := m.pages[i]
	b := &p.blocks[local/64%64]
	bit := uint64(1) << (local % 64)
	at := bits.OnesCount64(b.bits & (bit - 1))
	b.bits &^= bit
	if b.of = slices.Delete(b.of, at, at+1); len(b.of) == 0 {
		b.of = nil
	}
	if m.n, p.n = m.n-1, p.n-1; p.n == 0 {
		m.pages[i] = nil
	}
}

// All yields all roles and values, ascending. The loop may set values, but not add or remove roles.
func (m *Map[V]) All() iter.Seq2[int32, V] { return m.From(0) }

// From yields the same as All, but no role below first.
func (m *Map[V]) From(first int32) iter.Seq2[int32, V] {
	return func(yield func(int32, V) bool) {
		for i := int(first) / pageRoles; i < len(m.pages); i++ {
			if m.pages[i] == nil {
				continue
			}
			for k := range m.pages[i].blocks {
				b := &m.pages[i].blocks[k]
				base := int32(i*pageRoles + k*64)
				for left, at := b.bits, 0; left != 0; left, at = left&(left-1), at+1 {
					if local := base + int32(bits.TrailingZeros64(left)); local >= first && !yield(local, b.of[at]) {
						return
					}
				}
			}
		}
	}
}

// Roles returns the present roles, ascending.
func (m *Map[V]) Roles() []int32 {
	out := make([]int32, 0, m.n)
	for local := range m.All() {
		out = append(out, local)
	}
	return out
}

// Top returns the highest role, or −1 if there is none.
func (m *Map[V]) Top() int32 {
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
