package leases

import (
	"cmp"
	"errors"

	"github.com/goneli/neli/internal/lease"
)

// Origins is what a process knows of the beginnings of all logs.
type Origins []origin

type origin struct {
	whole  bool   // it is read from its origin (Entry.Origin)
	why    string // why not
	others bool   // another process may hold a role: it has claimed or beaten, or is of a newer version
	next   int64  // the offset to be read next
	end    int64  // of a Reset
}

// Read notes an entry: a Reset, or a record that is decoded if bad is nil. self is this process.
func (all Origins) Read(log int, e Entry, r *lease.Record, bad error, self string) {
	o := &all[log]
	if e.Reset {
		*o = origin{whole: e.Origin, why: e.Why, next: e.Offset, end: e.End}
		return
	}
	o.next = e.Offset + 1
	switch {
	case !o.whole:
	case !e.Origin:
		o.whole, o.why = false, e.Why
	case errors.Is(bad, lease.ErrOtherLog):
		o.whole, o.why = false, "a record names another topic of this name"
	}
	evidence := bad == nil && (r.Kind == lease.Beat || r.Kind == lease.Claim) && r.Session.Process != self
	o.others = o.others || evidence || errors.Is(bad, lease.ErrNewer)
}

// Proven reports whether the records of a log, read from its origin, show who holds its roles; if not,
// why says why, as far as that is known. Several partitions must all be read from their origin up to
// end, without a sign that another process has held anything: partitions may have been added, and
// members that have not noticed them still lead their roles in the old ones.
func (all Origins) Proven(log int) (yes bool, why string) {
	if o := &all[log]; !o.whole || len(all) == 1 {
		return o.whole, o.why
	}
	for i := range all {
		switch o := &all[i]; {
		case !o.whole:
			return false, cmp.Or(o.why, "another partition is not read from its origin")
		case o.others || o.next < o.end:
			return false, "another process may hold roles in other partitions"
		}
	}
	return true, ""
}
