package lease

import (
	"bytes"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// modelCoder encodes a state. Two states get the same code if they differ only in names, or in the
// age of things that are so old that no rule depends on it.
type modelCoder struct {
	out   []byte
	ids   map[Session]byte
	parts [][]byte
}

func (k *modelCoder) byte(bs ...byte) { k.out = append(k.out, bs...) }
func (k *modelCoder) offset(o int64)  { k.byte(byte(o + 2)) }
func (k *modelCoder) long(t time.Duration) { // one byte is enough for the few durations that there are
	k.byte(byte(1 + (t+modelTick-1)/modelTick))
}

func (k *modelCoder) id(s Session) {
	n, ok := k.ids[s]
	if !ok {
		n = byte(len(k.ids) + 1)
		k.ids[s] = n
	}
	k.byte(n)
}

// age writes how many ticks ago a reading was, at most two.
func (k *modelCoder) age(now, at clock.Mono) {
	if at == 0 {
		k.byte(3)
		return
	}
	k.byte(byte(min(2, now.Sub(at)/modelTick)))
}

func (k *modelCoder) fold(f *fold, roles int, now clock.Mono) {
	k.offset(f.newer)
	for role := range int32(roles) {
		h := f.holderOf(role)
		if h == nil {
			k.byte(0)
			continue
		}
		k.offset(f.tokens[role])
		k.offset(h.Last)
		k.id(h.Session)
		k.long(h.T)
		if now != 0 {
			k.age(now, h.heard.Mono)
		}
	}
}

// encode writes w. The result is valid until the next call.
func (k *modelCoder) encode(w *modelWorld) []byte {
	k.out = k.out[:0]
	if k.ids == nil {
		k.ids = map[Session]byte{}
	}
	clear(k.ids)
	now := w.now().Mono
	low := int64(len(w.log))
	for _, l := range w.procs {
		k.lease(w, l, now)
		if low = min(low, l.read+1); l.join != nil {
			low = min(low, l.join.from)
		}
	}
	if w.begins < w.c.begins {
		low = 0
	}
	k.fold(w.truth, w.c.roles, 0)
	k.byte(byte(len(w.log)), byte(w.sent), byte(w.begins), byte(w.doubles), byte(w.newers), byte(len(w.flight)))
	for _, token := range w.led {
		k.offset(token)
	}
	for _, token := range w.ended {
		k.offset(token)
	}
	for o := low; o < int64(len(w.log)); o++ {
		k.record(w, w.log[o].r, o)
	}
	k.inFlight(w)
	return k.out
}

// inFlight writes the records in flight, sorted: the order in which they were sent does not
// matter.
func (k *modelCoder) inFlight(w *modelWorld) {
	k.parts = k.parts[:0]
	start := len(k.out)
	for _, r := range w.flight {
		from := len(k.out)
		k.record(w, r, 1<<40)
		k.parts = append(k.parts, bytes.Clone(k.out[from:]))
	}
	slices.SortFunc(k.parts, bytes.Compare)
	k.out = k.out[:start]
	for _, p := range k.parts {
		k.byte(p...)
	}
}

func (k *modelCoder) lease(w *modelWorld, l *Lease, now clock.Mono) {
	k.id(l.own.session)
	k.offset(l.read)
	k.age(now, l.own.v.Mono)
	k.byte(byte(len(l.own.claims)))
	for _, c := range l.own.claims {
		k.byte(byte(c.seq))
		for _, role := range c.roles {
			k.byte(byte(role))
		}
	}
	if j := l.join; j != nil {
		k.byte(0)
		k.offset(j.from)
		k.offset(j.busy)
		k.long(j.bound)
		k.age(now, clock.Mono(j.begun))
		k.byte(byte(max(0, (clock.Mono(j.over).Sub(now)+modelTick-1)/modelTick)))
		for _, e := range j.kept {
			if e.sent.Mono != 0 && e.record.Session == l.own.session {
				k.offset(e.offset)
				k.age(now, e.sent.Mono)
			}
		}
		return
	}
	k.byte(1)
	k.fold(&l.fold, w.c.roles, now)
	if l.fold.newer != none {
		k.age(now, l.newerAt.Mono)
	}
	for role := range int32(w.c.roles) {
		token, gone := l.own.forgotten[role]
		h := l.fold.holderOf(role)
		if gone && h != nil && h.Session == l.own.session && l.fold.tokens[role] == token {
			k.byte(byte(role))
		}
	}
}

// record writes a record. If its sender has not read it back, the age of its stamp is written,
// too.
func (k *modelCoder) record(w *modelWorld, r *Record, o int64) {
	if r == nil {
		k.byte(0)
		return
	}
	k.byte(r.Kind[0], r.Kind[len(r.Kind)-1], byte(r.Seq))
	k.id(r.Session)
	k.offset(r.Read)
	if r.Longest != Unsaid {
		k.long(r.Longest)
	}
	if r.Fresh {
		k.byte(1)
	}
	for _, role := range r.Roles {
		k.byte(byte(role))
	}
	for _, g := range r.Ended {
		k.offset(g.Token)
		k.byte(byte(g.Roles[0]), byte(len(g.Roles)))
	}
	if s := r.State; s != nil {
		k.offset(s.Newer)
		for _, h := range s.Holders {
			k.id(h.Session)
			k.offset(h.Last)
		}
		for _, g := range s.Grants {
			k.byte(byte(g.Holder), byte(g.Roles[0]), byte(len(g.Roles)))
			k.offset(g.Token)
		}
	}
	for _, l := range w.procs {
		if l.own.session == r.Session && l.read < o {
			at := clock.Mono(0)
			for _, s := range l.own.sent {
				if s.seq == r.Seq {
					at = s.at.Mono
				}
			}
			k.age(w.now().Mono, at)
		}
	}
}
