package lease

import "sort"

// trail is the recent history of a process's fold. It shows whether other processes' folds
// had the same history. The protocol does not depend on it: as long as the log keeps its
// promises, folds never differ.
type trail struct {
	knownAt int64 // offset at which the fold became known
	marks   []mark
	ended   map[Session]int64 // session → offset at which it lost its last role
	order   []Session         // the keys of ended, oldest first
	from    int64             // ended is complete from this offset on
}

// mark is the hash of the fold from offset on.
type mark struct {
	offset int64
	hash   uint64
}

// add notes the hash of the fold after the record at o, and keeps at least 2K marks.
func (t *trail) add(o int64, hash uint64, history int) {
	if n := 2 * history; len(t.marks) >= 2*n {
		t.marks = append(t.marks[:0], t.marks[len(t.marks)-n:]...)
	}
	t.marks = append(t.marks, mark{o, hash})
}

// differs reports whether the fold at offset read had another hash. It returns false for an offset that is too old.
func (t *trail) differs(read int64, hash uint64) bool {
	i := t.until(read)
	return i > 0 && t.marks[i-1].hash != hash
}

// until returns how many marks lie at or before an offset.
func (t *trail) until(o int64) int {
	return sort.Search(len(t.marks), func(i int) bool { return t.marks[i].offset > o })
}

// before returns the offset of the newest mark at or before an offset; −1 if there is none.
func (t *trail) before(o int64) int64 {
	if i := t.until(o); i > 0 {
		return t.marks[i-1].offset
	}
	return none
}

const maxEnded = 4096

// end notes that sessions lost their last role at offset o.
func (t *trail) end(ids []Session, o int64) {
	for _, id := range ids {
		if t.ended == nil {
			t.ended = map[Session]int64{}
		}
		if _, known := t.ended[id]; !known {
			t.order = append(t.order, id)
		}
		t.ended[id] = o
	}
	for len(t.order) > maxEnded {
		id := t.order[0]
		t.order = t.order[1:]
		t.from = max(t.from, t.ended[id]+1)
		delete(t.ended, id)
	}
}

// contradicts reports whether a Beat proves that its sender has another fold: only a session
// that holds something in its sender's fold sends Beats, and this one holds nothing here.
func (t *trail) contradicts(r *Record) bool {
	if r.Read < t.knownAt || r.Read < t.from {
		return false
	}
	o, ended := t.ended[r.Session]
	return !ended || r.Read >= o
}
