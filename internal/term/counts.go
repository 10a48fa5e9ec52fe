package term

import (
	"fmt"
	"sync/atomic"

	"github.com/goneli/neli/internal/clock"
)

// Counts says how many terms began and ended, whether or not the application was told, and of how many it was told.
type Counts struct {
	Started uint64
	Told    uint64
	Ended   [Fatal + 1]uint64 // by Reason
}

// Counts returns the counts so far. The caller must hold the arbiter's lock.
func (t *Table) Counts() Counts { return t.counts }

// Led returns how many units below a bound the application leads at time now. The caller must
// hold the arbiter's lock. The cost does not grow with the number of units, unless one beyond the
// bound was ever held.
func (t *Table) Led(now clock.Instant, below int) int {
	lines := t.lines.Load()
	if lines == nil || t.published.Load() == 0 {
		return 0
	}
	led := 0
	for p := range *lines {
		l := &(*lines)[p]
		switch {
		case len(l.units) == 0 || !t.fresh(l, now):
		case t.top <= below:
			led += len(l.units)
		default:
			for _, e := range l.units {
				if e.unit < below {
					led++
				}
			}
		}
	}
	return led
}

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

// slot returns the slot of a unit, or nil if no unit of its page was ever held. Any goroutine may call it.
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

// Reason is why leadership changed.
type Reason int

// The reasons. None is the zero value; no Change has it.
const (
	None Reason = iota
	Elected
	Unassigned
	Closing
	Roles
	Resigned
	Lapsed
	NotPulsed
	Superseded
	Overdue
	LogReset
	Unhealthy
	SteppedDown
	Transferred
	Rebalanced
	Fatal
)

var reasonNames = [...]string{"none", "elected", "unassigned", "closing", "roles_changed", "resigned", "lapsed",
	"not_pulsed", "superseded", "overdue", "log_reset", "unhealthy", "stepped_down", "transferred", "rebalanced", "fatal"}

// String returns the reason as in log lines, metrics and JSON: "not_pulsed", "roles_changed".
func (r Reason) String() string {
	if r < 0 || int(r) >= len(reasonNames) {
		return fmt.Sprintf("Reason(%d)", int(r))
	}
	return reasonNames[r]
}

// MarshalText returns String. It returns an error if r is none of the constants.
func (r Reason) MarshalText() ([]byte, error) {
	if r < 0 || int(r) >= len(reasonNames) {
		return nil, fmt.Errorf("neli: Reason: %d is none", int(r))
	}
	return []byte(reasonNames[r]), nil
}
