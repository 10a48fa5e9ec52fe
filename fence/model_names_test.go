package fence

import (
	"cmp"
	"slices"
)

// canon makes states equal that differ only in names. Of epochs only their order counts, and
// whether one exceeds another by one. Requests that have no effect are dropped, and the others are
// sorted.
func (w *modelWorld) canon() {
	if w.fault != fNone {
		return
	}
	w.dropRequests()
	for i := range w.actors {
		if a := &w.actors[i]; a.pc == pStop || a.pc == pDone {
			a.gen, a.epoch = 0, -1
			a.read, a.inited, a.later = a.read && a.pc == pDone, false, false
		}
	}
	for gen := range int8(maxIDs) {
		renumber(w.epochs(gen))
	}
	slices.SortFunc(w.requests[:], func(a, b request) int {
		return cmp.Or(cmp.Compare(order(a), order(b)))
	})
	slices.SortFunc(w.open[:], func(a, b written) int {
		return cmp.Or(empty(a)-empty(b), cmp.Compare(a.actor, b.actor), cmp.Compare(a.gen, b.gen))
	})
}

func (w *modelWorld) dropRequests() {
	for j := range w.requests {
		r := &w.requests[j]
		if r.kind == mNone || r.awaited {
			continue
		}
		c := w.k.coord(&w.modelState, r.actor)
		old := r.kind != mInit && r.stage == 0 && c.known && c.gen == r.gen && r.epoch < c.epoch-1
		if old && !(w.k.noVerify && r.kind == mProd) || r.kind == mProd && r.stage == 2 {
			*r = request{}
		}
	}
}

// epochs returns all epochs in the state that belong to one producer id.
func (w *modelWorld) epochs(gen int8) []*int8 {
	var all []*int8
	put := func(e *int8) {
		if *e >= 0 {
			all = append(all, e)
		}
	}
	for i := range w.coords {
		if c := &w.coords[i]; c.gen == gen && c.known {
			put(&c.epoch)
			put(&c.last)
		}
	}
	put(&w.fenced[gen])
	for i := range w.actors {
		a := &w.actors[i]
		if a.gen == gen {
			put(&a.epoch)
		}
		if a.answer == rOK && a.aGen == gen {
			switch a.pc {
			case pWaitI, pWaitC, pWaitX, pWaitR:
				put(&a.aEpoch)
			}
		}
	}
	for j := range w.requests {
		if r := &w.requests[j]; r.kind != mNone && r.gen == gen {
			put(&r.epoch)
		}
	}
	return all
}

func renumber(epochs []*int8) {
	slices.SortFunc(epochs, func(a, b *int8) int { return cmp.Compare(*a, *b) })
	now, before := int8(0), int8(-1)
	for _, e := range epochs {
		v := *e
		if before >= 0 {
			now += min(2, v-before)
		}
		before = v
		*e = now
	}
}

func empty(r written) int {
	if r.actor == 0 {
		return 1
	}
	return 0
}

// order sorts requests, absent ones last.
func order(r request) uint64 {
	if r.kind == mNone {
		return 1 << 63
	}
	o := uint64(r.kind)<<40 | uint64(r.actor)<<32 | uint64(uint8(r.gen+1))<<24 | uint64(uint8(r.epoch+1))<<16 | uint64(r.stage)<<8
	if r.awaited {
		o |= 1
	}
	if r.commit {
		o |= 2
	}
	return o
}
