package observe

import (
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
)

// Picture is what was known of all roles below R, for all Watches together: any number of them
// compare it with what they have told, without a lock. It does not change any more once it is made.
type Picture struct {
	turn  uint64        // watch.Bell's, when it was begun
	at    clock.Instant // when it was finished
	roles int
	parts [][]*pictured // by shard, by slice of its roles
	heard map[lease.Session]clock.Instant
	cursor
}

func NewPicture(turn uint64) *Picture { return &Picture{turn: turn} }

// IsOf reports whether the picture was begun in this turn, and is younger than fresh.
func (p *Picture) IsOf(turn uint64, fresh time.Duration, now clock.Instant) bool {
	return p != nil && p.turn == turn && now.Age(p.at) < fresh
}

// Next looks at the next slices that may have changed since the last picture, which may be nil,
// and reports whether there may be more.
func (p *Picture) Next(of Shards, roles int, last *Picture, now clock.Instant) (more bool) {
	if p.parts == nil {
		p.begin(of, roles)
	}
	var in *Standings
	view := uint64(0)
	for looked := int32(0); looked < SurveyRoles; {
		s, from, to, ok := p.slice(of, roles)
		if !ok {
			p.at = now
			return false
		}
		if s != in {
			in, view = s, s.View(now)
		}
		looked += p.look(s, from, to, view, last, now)
	}
	return true
}

// pictured is a slice of the roles of a shard. The next picture has the same one if nothing has changed there.
type pictured struct {
	shard byrole.Numbering
	from  int32
	is    sighting
	keys  []int64 // by role: Known.Key
	of    map[int64]*Known
}

// sighting identifies the state of a slice of roles. Nothing has changed while both numbers are the same.
type sighting struct {
	version uint64 // of the holders; 0: look again
	view    uint64 // of what is known about these holders
}

// begin notes when each holder was last heard.
func (p *Picture) begin(of Shards, roles int) {
	p.roles, p.parts, p.heard = roles, make([][]*pictured, len(of)), map[lease.Session]clock.Instant{}
	for _, s := range of {
		for h := range s.of.Holders() {
			if at := p.heard[h.Session]; h.Heard.Mono > at.Mono {
				p.heard[h.Session] = h.Heard
			}
		}
	}
}

// look adds the roles from..to-1 of a shard, which are one slice, and returns how many it looked at:
// none if nothing has changed since the last picture.
func (p *Picture) look(s *Standings, from, to int32, view uint64, last *Picture, now clock.Instant) (looked int32) {
	i, shard := int(from/SurveyRoles), s.shard.Index
	is := sighting{view: view}
	if s.short != nil {
		is.version = s.short.Version(i)
	}
	if old := last.part(shard, i, to-from); old != nil && old.is == is && is.version != 0 {
		p.put(shard, old)
		return 0
	}
	p.put(shard, s.pictured(from, to, is, now))
	return to - from
}

func (p *Picture) put(shard int, of *pictured) { p.parts[shard] = append(p.parts[shard], of) }

// part returns a slice if it has that number of roles.
func (p *Picture) part(shard, slice int, roles int32) *pictured {
	if p == nil || shard >= len(p.parts) || slice >= len(p.parts[shard]) || len(p.parts[shard][slice].keys) != int(roles) {
		return nil
	}
	return p.parts[shard][slice]
}

// pictured looks at some roles. It notes which holders are silent: watchers that are told so must be
// told if such a holder is heard again.
func (s *Standings) pictured(from, to int32, is sighting, now clock.Instant) *pictured {
	p := &pictured{shard: s.shard, from: from, is: is, keys: make([]int64, to-from), of: map[int64]*Known{}}
	l := Lookup{In: s, Now: now}
	var last *Known
	for local := from; local < to; local++ {
		k := l.Role(local)
		p.keys[local-from] = k.Key
		if k == last {
			continue
		}
		last = k
		p.of[k.Key] = k
		if k.Key == VacantToken {
			s.silences.SaidSilent(k.grantee.Session)
		}
	}
	return p
}

// Watcher is one Watch in progress: what its consumer was last told of each role. The consumer
// gets changes when it asks for them, so a Watcher costs no more than this, however slow the
// consumer is.
type Watcher struct {
	told []int64  // by role: Known.Key
	Last *Picture // the last picture that it was told of; nil: none
	Grouped
}

// NewWatcher returns a Watcher that was told nothing.
func NewWatcher() *Watcher { return &Watcher{} }

// Compare returns what is new in a picture.
func (w *Watcher) Compare(p *Picture) []Standing {
	for len(w.told) < p.roles {
		w.told = append(w.told, UnknownToken)
	}
	w.told = w.told[:p.roles]
	for shard, parts := range p.parts {
		for slice, part := range parts {
			if w.Last.part(shard, slice, int32(len(part.keys))) != part {
				w.look(p, part)
			}
		}
	}
	w.Last = p
	out := w.Out
	w.Grouped = Grouped{}
	return out
}

// Knows reports whether w was told everything up to this turn.
func (w *Watcher) Knows(turn uint64) bool { return w.Last != nil && w.Last.turn == turn }

func (w *Watcher) look(p *Picture, part *pictured) {
	for i, key := range part.keys {
		role := part.shard.Role(part.from + int32(i))
		if role >= len(w.told) || key == w.told[role] {
			continue
		}
		w.told[role] = key
		k := part.of[key]
		if at, holds := p.heard[k.grantee.Session]; holds && at.Mono > k.grantee.Heard.Mono {
			k = &Known{key, k.grantee}
			k.grantee.Heard = at
		}
		w.Add(part.shard, part.from+int32(i), k)
	}
}

// View returns a number that changes whenever the Status of roles may change although no role changes hands.
func (s *Standings) View(now clock.Instant) uint64 {
	view := uint64(0) // a sum: the holders come in no order
	for h := range s.of.Holders() {
		bits := h.Session.N << 2
		if now.Raw < h.FreeAt {
			bits |= 1
		}
		if s.logs.Old(h.Last) {
			bits |= 2
		}
		view += roster.Hash(h.Session.Process, bits)
	}
	for i, yes := range []bool{s.of.Known(), s.logs.CaughtUp(), now.Raw >= s.of.FreeAt(s.of.Roles())} {
		if yes {
			view += roster.Hash("", uint64(i))
		}
	}
	return view
}
