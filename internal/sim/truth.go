package sim

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// The true fold of each log, from offset 0. It is a second implementation of the design's rules,
// written from the design, and keeps its whole history.

// session is one incarnation of a process on one log.
type session struct {
	process string
	n       uint64
}

// truth is one log and its fold.
type truth struct {
	index   int // the partition
	entries []*truthEntry
	empty   map[int64]bool // offsets without records
	newer   int64          // Ω; −1: none
	roles   map[int32]tenure
	holders map[session]*truthHolder
	history map[int32][]turn // by role: its changes, ascending
}

// truthEntry is one record with its effects.
type truthEntry struct {
	value  string
	r      *record // nil: not of this group, log and version
	newer  bool
	won    []int32 // roles won by a valid Claim
	lives  bool    // the record is evidence
	before claimed
}

// claimed counts the roles of a Claim by the state in which it found them.
type claimed struct {
	free, foreign, own int // numbers of roles
	otherT             bool
}

// tenure is a term of a role.
type tenure struct {
	token int64
	by    session
}

// turn is a change of a role's holder; by is zero if nobody holds it.
type turn struct {
	at int64
	tenure
}

type truthHolder struct {
	last  int64
	t     time.Duration
	roles int
}

func newTruth(index int) *truth {
	return &truth{index: index, empty: map[int64]bool{}, newer: -1, roles: map[int32]tenure{}, holders: map[session]*truthHolder{}, history: map[int32][]turn{}}
}

// pass skips offsets without records, up to the given one.
func (f *truth) pass(before int64) {
	for n := int64(len(f.entries)); n < before && f.empty[n]; n++ {
		f.entries = append(f.entries, &truthEntry{})
	}
}

// step folds the next entry.
func (f *truth) step(value []byte, group, log string) *truthEntry {
	o := int64(len(f.entries))
	e := &truthEntry{value: string(value)}
	e.r, e.newer = decode(value, group, log)
	f.entries = append(f.entries, e)
	switch {
	case e.newer:
		f.newer = o
	case e.r == nil:
	case e.r.Kind == "claim":
		f.claim(o, e)
	case e.r.Kind == "release":
		for _, g := range e.r.ended {
			for _, role := range g.roles {
				if h, held := f.roles[role]; held && h.token == g.token && h.by == e.r.id() {
					f.free(role, o)
				}
			}
		}
	}
	if e.r != nil && (e.r.Kind == "claim" || e.r.Kind == "beat") {
		if h := f.holders[e.r.id()]; h != nil {
			h.last, e.lives = o, true
		}
	}
	return e
}

func (f *truth) claim(o int64, e *truthEntry) {
	r := e.r
	for _, role := range r.roles {
		h, held := f.roles[role]
		switch {
		case !held:
			e.before.free++
		case h.by.process == r.Process:
			e.before.own++
		default:
			e.before.foreign++
			e.before.otherT = e.before.otherT || f.holders[h.by].t != r.T
		}
	}
	if r.Read < f.newer {
		return
	}
	if r.Fresh {
		for _, h := range f.holders {
			if r.Read < h.last {
				return
			}
		}
		for role := range f.roles {
			f.free(role, o)
		}
	}
	for _, role := range r.roles {
		if h, held := f.roles[role]; !held || r.Read >= f.holders[h.by].last {
			e.won = append(e.won, role)
		}
	}
	for _, role := range e.won {
		f.free(role, o)
	}
	for _, role := range e.won {
		h := f.holders[r.id()]
		if h == nil {
			h = &truthHolder{t: r.T}
			f.holders[r.id()] = h
		}
		h.roles++
		f.roles[role] = tenure{o, r.id()}
		f.history[role] = append(f.history[role], turn{o, f.roles[role]})
	}
	if len(e.won) > 0 {
		f.newer = -1
	}
}

func (f *truth) free(role int32, o int64) {
	h, held := f.roles[role]
	if !held {
		return
	}
	delete(f.roles, role)
	f.history[role] = append(f.history[role], turn{at: o})
	if f.holders[h.by].roles--; f.holders[h.by].roles == 0 {
		delete(f.holders, h.by)
	}
}

// at returns who held a role after the record at offset o.
func (f *truth) at(role int32, o int64) (tenure, bool) {
	turns := f.history[role]
	i := sort.Search(len(turns), func(i int) bool { return turns[i].at > o })
	if i == 0 || turns[i-1].by == (session{}) {
		return tenure{}, false
	}
	return turns[i-1].tenure, true
}

// won reports whether the record at offset token is a Claim with which the process won the role.
func (f *truth) won(role int32, token int64, process string) bool {
	if token < 0 || token >= int64(len(f.entries)) {
		return false
	}
	e := f.entries[token]
	_, found := slices.BinarySearch(e.won, role)
	return found && e.r.Process == process
}

// text describes the log with its effects. Successive Beats of one session share a line.
func (f *truth) text(who func(process string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "partition %d:\n", f.index)
	beats, from := 0, int64(0)
	var last *record
	flush := func() {
		if beats > 0 {
			fmt.Fprintf(&b, "%6d  %-6s %d beats of session %d, the last read %d\n", from, who(last.Process), beats, last.Session, last.Read)
		}
		beats = 0
	}
	for i, e := range f.entries {
		o, r := int64(i), e.r
		if r != nil && r.Kind == "beat" && e.lives {
			if beats > 0 && last.id() != r.id() {
				flush()
			}
			if beats == 0 {
				from = o
			}
			beats, last = beats+1, r
			continue
		}
		flush()
		switch {
		case e.newer:
			fmt.Fprintf(&b, "%6d  newer version\n", o)
		case r == nil:
			fmt.Fprintf(&b, "%6d  nothing: %.60q\n", o, e.value)
		case r.Kind == "claim":
			fmt.Fprintf(&b, "%6d  %-6s claim of session %d, fresh %v, read %d, T %v, roles %.40s: won %d of %d\n", o, who(r.Process), r.Session, r.Fresh,
				r.Read, r.T, r.Packed, len(e.won), len(r.roles))
		case r.Kind == "release":
			fmt.Fprintf(&b, "%6d  %-6s release of session %d, read %d, to %s: %s\n", o, who(r.Process), r.Session, r.Read, who(r.To), brief(r.Ended))
		default:
			fmt.Fprintf(&b, "%6d  %-6s %s of session %d, read %d\n", o, who(r.Process), r.Kind, r.Session, r.Read)
		}
	}
	flush()
	return b.String()
}

// brief returns the beginning of a long text.
func brief(x any) string {
	s := fmt.Sprint(x)
	return s[:min(60, len(s))]
}
