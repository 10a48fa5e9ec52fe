package neli

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

// The canonical form of a state. Two states that differ in names only (of
// processes, incarnations, sequence numbers, offsets) or in ages beyond the
// largest that matters are one, and the search continues from what decode makes
// of it. TestModelCanonicalForm checks on random walks that nothing was merged
// that behaves differently, and every counterexample is replayed in a world that
// was never brought into this form.
//
// Offsets: what is kept of the log begins at modelFirst. Older ones are renamed:
// tokens are compared with tokens only; r.read with lease.last only.

const (
	codeNone    = 0 // tokenNone
	codeUnknown = 1 // tokenUnknown
	codeDead    = 2 // a token that nothing else speaks of
)

// modelCoder encodes and decodes; it keeps what it allocates.
type modelCoder struct {
	out    []byte
	keys   [modelProcs][]byte
	lost   [][]byte // records in flight of incarnations that are gone
	tokens []int64  // old ones, newest first
	places []modelPlace
}

// modelPlace is an old offset: a lease.last, or a r.read.
type modelPlace struct {
	o    int64
	read bool
	code byte
}

func modelClip(d, limit time.Duration) byte { return byte(min(d, limit) / modelUnit) }

// scan collects the old offsets.
func (m *modelCoder) scan(w *modelWorld) {
	m.tokens, m.places = m.tokens[:0], append(m.places[:0], modelPlace{o: w.first - 1})
	if w.cfg.recreate {
		return // offsets keep their values
	}
	token := func(t int64) {
		if t >= 0 && t < w.first && !slices.Contains(m.tokens, t) {
			m.tokens = append(m.tokens, t)
		}
	}
	for i := range w.procs {
		token(w.procs[i].lease.mine)
		if o := w.procs[i].lease.last; o < w.first-1 {
			m.places = append(m.places, modelPlace{o: o})
		}
	}
	for _, list := range [2][]record{w.log, w.flight} {
		for i := range list {
			token(list[i].token)
			if o := list[i].read; o < w.first && list[i].kind != kindHello {
				m.places = append(m.places, modelPlace{o: o, read: true})
			}
		}
	}
	if m.matters(w) {
		token(w.newest)
	}
	slices.SortFunc(m.tokens, func(a, b int64) int { return cmp.Compare(b, a) })
	slices.SortFunc(m.places, func(a, b modelPlace) int {
		if a.o == b.o && a.read != b.read { // a read equal to last is not below it
			if a.read {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.o, a.o)
	})
	m.number()
}

// number gives places their codes from the newest down. All that matters of two
// of them is whether a read is at least a last.
func (m *modelCoder) number() {
	code, read := byte(modelFirst-1), true
	for i := range m.places {
		p := &m.places[i]
		if p.read && !read {
			code--
		}
		read = p.read
		p.code = code
	}
}

// matters reports whether the oracle still needs the newest token: only for as
// long as somebody might lead by that one or an older one.
func (m *modelCoder) matters(w *modelWorld) bool {
	if w.newest == noToken || w.cfg.recreate {
		return w.newest != noToken
	}
	for i := range w.procs {
		if k := w.procs[i].lease.mine; k != noToken && k <= w.newest {
			return true
		}
		for x := range w.log {
			if w.first+int64(x) <= w.newest && w.log[x].kind == kindClaim && w.own(i, x) {
				return true
			}
		}
	}
	return false
}

func (m *modelCoder) token(w *modelWorld, t int64) byte {
	switch {
	case t == tokenNone:
		return codeNone
	case t == tokenUnknown:
		return codeUnknown
	case w.cfg.recreate:
		return byte(t)
	case t >= w.first:
		return byte(modelFirst + t - w.first)
	}
	if i := slices.Index(m.tokens, t); i >= 0 {
		return byte(modelFirst) - 1 - byte(i)
	}
	return codeDead
}

func (m *modelCoder) place(w *modelWorld, o int64, read bool) byte {
	if w.cfg.recreate {
		return byte(o)
	}
	if o >= w.first {
		return byte(modelFirst + o - w.first)
	}
	for i := range m.places {
		if m.places[i].o == o && m.places[i].read == read {
			return m.places[i].code
		}
	}
	return byte(modelFirst) - 1 // lease.read, just before what is kept
}

// encode returns the canonical form of w, valid until the next call.
func (m *modelCoder) encode(w *modelWorld) []byte {
	m.scan(w)
	newest, spent := byte(0), byte(0)
	if m.matters(w) {
		newest = m.token(w, w.newest)
		if w.spent {
			spent = 1
		}
	}
	if w.recreated {
		spent |= 2
	}
	out := append(m.out[:0], newest, spent, byte(w.count), byte(len(w.log)))
	for i := range w.log {
		out = m.record(out, w, &w.log[i])
	}
	m.lost = m.lost[:0]
	for i := range w.flight {
		if w.procOf(w.flight[i].member) < 0 {
			m.lost = append(m.lost, m.record(nil, w, &w.flight[i]))
		}
	}
	slices.SortFunc(m.lost, bytes.Compare)
	out = append(out, byte(len(m.lost)))
	for _, r := range m.lost {
		out = append(out, r...)
	}
	for i := range w.procs {
		m.keys[i] = m.proc(m.keys[i][:0], w, i, newest != 0 && spent&1 == 0 && w.owner == i)
	}
	keys := m.keys[:len(w.procs)]
	slices.SortFunc(keys, bytes.Compare)
	for _, k := range keys {
		out = append(out, k...)
	}
	m.out = out
	return out
}

func (w *modelWorld) procOf(member string) int {
	for i := range w.procs {
		if w.procs[i].lease.me == member {
			return i
		}
	}
	return -1
}

var modelKinds = [...]kind{kindClaim, kindBeat, kindRelease, kindHello}

func (m *modelCoder) record(out []byte, w *modelWorld, r *record) []byte {
	if r.kind == kindHello {
		return append(out, 3, 0, 0)
	}
	k := byte(slices.Index(modelKinds[:], r.kind))
	return append(out, k, m.token(w, r.token), m.place(w, r.read, true))
}

// own reports whether process i may still read the record at index x as its own.
// One that it has read matters only to those whose reads jump.
func (w *modelWorld) own(i, x int) bool {
	p := &w.procs[i]
	return w.log[x].member == p.lease.me && (w.cfg.jump || w.cfg.recreate || w.first+int64(x) > p.lease.read)
}

// proc encodes process i with the records that are its own. Sequence numbers
// become ranks among those that something still refers to.
func (m *modelCoder) proc(out []byte, w *modelWorld, i int, owner bool) []byte {
	p, c := &w.procs[i], w.cfg
	l := &p.lease
	var seqs [24]uint64
	ranks := seqs[:0]
	note := func(s uint64) {
		if s != 0 && !slices.Contains(ranks, s) {
			ranks = append(ranks, s)
		}
	}
	note(l.claiming)
	for x := range w.log {
		if w.own(i, x) {
			note(w.log[x].seq)
		}
	}
	for x := range w.flight {
		if w.flight[x].member == l.me {
			note(w.flight[x].seq)
		}
	}
	slices.Sort(ranks)
	rank := func(s uint64) byte { return byte(slices.Index(ranks, s) + 1) }
	out = append(out, m.token(w, l.token), m.place(w, l.last, false), m.place(w, l.read, false), m.token(w, l.mine),
		modelFlags(p, owner, len(ranks) > 0), rank(l.claiming))
	if c.recreate {
		out = append(out, byte(p.next))
	}
	// After a Release nobody asks for how long it has been quiet.
	quiet := l.quiet
	if l.token == tokenNone {
		quiet = instant{}
	}
	out = m.age(out, w, p.at, quiet, l.wait)
	if l.mine != noToken {
		out = m.age(out, w, p.at, l.v, l.term.t)
	}
	at := len(out)
	out = append(out, 0)
	for _, s := range l.sent {
		if r := rank(s.seq); r != 0 && p.at.age(s.stamp) < l.term.t {
			out = m.age(append(out, r), w, p.at, s.stamp, l.term.t)
			out[at]++
		}
	}
	at = len(out)
	out = append(out, 0)
	for x := range w.log {
		if w.own(i, x) {
			out = append(out, byte(x), rank(w.log[x].seq))
			out[at]++
		}
	}
	return m.flightOf(out, w, i, rank)
}

func (m *modelCoder) flightOf(out []byte, w *modelWorld, i int, rank func(uint64) byte) []byte {
	at := len(out)
	out = append(out, 0)
	for {
		// In the order of their numbers; there are few.
		next, best := -1, byte(0)
		for x := range w.flight {
			r := rank(w.flight[x].seq)
			if w.flight[x].member == w.procs[i].lease.me && r > out[at] && (next < 0 || r < best) {
				next, best = x, r
			}
		}
		if next < 0 {
			break
		}
		out = append(m.record(out, w, &w.flight[next]), best)
		out[at] = best
	}
	// The count, for decode.
	out[at] = byte((len(out) - at - 1) / 4)
	return out
}

const (
	flagOwner  = 1 << iota // led by the newest token
	flagBeaten             // sent a beat in this beat interval
	flagPaused             // a claim was reported as failed just now
	flagStray
)

func modelFlags(p *modelProc, owner, outstanding bool) byte {
	l, f := &p.lease, byte(0)
	if owner {
		f |= flagOwner
	}
	if (l.mine != noToken || outstanding) && !l.beatDue(p.at) {
		f |= flagBeaten
	}
	if l.pause > p.at.mono {
		f |= flagPaused
	}
	if p.stray {
		f |= flagStray
	}
	return f
}

// age encodes how long ago t was; by both clocks where they may differ.
func (m *modelCoder) age(out []byte, w *modelWorld, now, t instant, limit time.Duration) []byte {
	out = append(out, modelClip(now.age(t), limit))
	if w.cfg.suspend {
		out = append(out, modelClip(now.wall-t.wall, limit))
	}
	return out
}
