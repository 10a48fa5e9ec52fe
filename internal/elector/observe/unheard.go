package observe

import (
	"iter"

	"github.com/goneli/neli/internal/lease"
)

// unheard is the holders that were not heard since reading began. Nothing is known of their roles.
type unheard struct {
	of    map[lease.Session]bool // nil: the holders are not known
	turns uint64                 // how often one of them was heard after all
}

// begin handles that the holders have become known; old reports whether evidence was in the log before reading began.
func (u *unheard) begin(holders iter.Seq[lease.HolderState], old func(offset int64) bool) {
	u.of = map[lease.Session]bool{}
	for h := range holders {
		if old(h.Last) {
			u.of[h.Session] = true
		}
	}
}

// heard notes evidence of a session; live means that it was written since reading began. Even a
// session with nothing but old evidence may hold roles.
func (u *unheard) heard(id lease.Session, live bool) {
	switch {
	case !live && u.of != nil:
		u.of[id] = true
	case live && u.of[id]:
		delete(u.of, id)
		u.turns++
	}
}
