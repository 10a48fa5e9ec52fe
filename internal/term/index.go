package term

import "sync/atomic"

// index finds the slot of a unit. Slots lie in pages that never move, so a reader with an old
// directory still sees withdrawals. It may only miss a page newer than its directory, and nothing
// in that page was published when the reader began. A page takes 16 bytes for each of its units,
// and is made when the first of them is held. Its 32 KiB are whole pages of Go's heap; a smaller
// one would take up to a fifth more.
type index struct {
	directory atomic.Pointer[[]atomic.Pointer[page]]
}

const pageSize = 2048

type page [pageSize]slot

// slot is a unit's place in the index.
type slot struct {
	published atomic.Pointer[term] // the term that the application may act upon; nil: none
	entry     *entry               // guarded by the arbiter's lock
}

// slot returns the slot of a unit, or nil if the unit was never held. Any goroutine may call it.
func (x *index) slot(unit int) *slot {
	d := x.directory.Load()
	if d == nil || unit < 0 || unit/pageSize >= len(*d) {
		return nil
	}
	if p := (*d)[unit/pageSize].Load(); p != nil {
		return &p[unit%pageSize]
	}
	return nil
}

func (x *index) entry(unit int) *entry {
	if s := x.slot(unit); s != nil {
		return s.entry
	}
	return nil
}

// add returns the entry of a unit, and makes one if there is none.
func (x *index) add(unit int) *entry {
	s := x.slot(unit)
	if s == nil {
		s = &x.page(unit / pageSize)[unit%pageSize]
	}
	if s.entry == nil {
		s.entry = &entry{unit: unit, position: -1}
	}
	return s.entry
}

func (x *index) remove(unit int) { x.slot(unit).entry = nil }

// page returns page n, and makes it if necessary.
func (x *index) page(n int) *page {
	var old []atomic.Pointer[page]
	if d := x.directory.Load(); d != nil {
		old = *d
	}
	if n >= len(old) {
		wider := make([]atomic.Pointer[page], max(n+1, 2*len(old)))
		for i := range old {
			wider[i].Store(old[i].Load())
		}
		x.directory.Store(&wider)
		old = wider
	}
	p := old[n].Load()
	if p == nil {
		p = new(page)
		old[n].Store(p)
	}
	return p
}
