package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
)

// picture is what was known of all roles below R, for all Watches together: any number of them
// compare it with what they have told, without a lock. It does not change, but for the time in
// which it is made.
type picture struct {
	turn  uint64        // of the Elector, when it was begun
	at    clock.Instant // when it was finished
	roles int
	parts [][]*pictured // by shard, by slice of its roles
	heard map[lease.Session]clock.Instant

	cursor // of the making
}

// pictured is a slice of the roles of a shard. It is the same one in the next picture if nothing has
// changed there.
type pictured struct {
	shard *shard // its number and those of its roles do not change
	from  int32
	is    sighting
	keys  []int64 // by role: token, or what stands for none
	of    map[int64]*known
}

// sighting identifies the state of a slice of roles. Nothing has changed while both numbers are the
// same.
type sighting struct {
	version uint64 // of the holders; 0: look again
	view    uint64 // of what is known about these holders
}

// picture looks at the next slices that may have changed since the last picture, which may be nil,
// and reports whether there are more.
func (n *Node) picture(p, last *picture, now clock.Instant) (more bool) {
	if p.parts == nil {
		p.begin(n)
	}
	var of *shard
	view := uint64(0)
	for looked := int32(0); looked < surveyRoles; {
		s, from, to, ok := n.slice(&p.cursor)
		if !ok {
			p.at = now
			return false
		}
		if s != of {
			of, view = s, s.view(now)
		}
		is, i := sighting{s.lease.Version(int(from / surveyRoles)), view}, int(from/surveyRoles)
		old := last.part(s.Index, i, to-from)
		if old != nil && old.is == is && is.version != 0 {
			p.put(s.Index, old)
			continue
		}
		p.put(s.Index, s.pictured(from, to, is, now))
		looked += to - from
	}
	return true
}

func (p *picture) begin(n *Node) {
	p.roles, p.parts, p.heard = n.desired.Roles, make([][]*pictured, len(n.shards)), map[lease.Session]clock.Instant{}
	for _, s := range n.shards {
		for h := range s.lease.Holders() {
			if at := p.heard[h.Session]; h.Heard.Mono > at.Mono {
				p.heard[h.Session] = h.Heard
			}
		}
	}
}

func (p *picture) put(shard int, of *pictured) { p.parts[shard] = append(p.parts[shard], of) }

// part returns a slice if it has so many roles.
func (p *picture) part(shard, slice int, roles int32) *pictured {
	if p == nil || shard >= len(p.parts) || slice >= len(p.parts[shard]) || len(p.parts[shard][slice].keys) != int(roles) {
		return nil
	}
	return p.parts[shard][slice]
}

// pictured looks at some roles. Who is told that a holder is silent must be told if it is heard
// again.
func (s *shard) pictured(from, to int32, is sighting, now clock.Instant) *pictured {
	p := &pictured{shard: s, from: from, is: is, keys: make([]int64, to-from), of: map[int64]*known{}}
	l := lookup{shard: s, now: now}
	var last *known
	for local := from; local < to; local++ {
		k := l.role(local)
		p.keys[local-from] = k.key
		if k == last {
			continue
		}
		last = k
		p.of[k.key] = k
		if k.key == vacantToken {
			s.claims.SaidSilent(k.grantee.Session)
		}
	}
	return p
}

// Watcher is one Watch in progress: what its consumer was last told of each role. The consumer
// gets changes when it asks for them, so a Watcher costs no more than this, however slow the
// consumer is.
type Watcher struct {
	told []int64  // by role: token, or what stands for none
	last *picture // that it was told; nil: nothing
	grouped
}

// NewWatcher returns a Watcher that was told nothing.
func NewWatcher() *Watcher { return &Watcher{} }

// Changes returns what w was not told yet of the roles below R, and marks it as told. It leaves
// out unknown roles, unless they were known before.
func (n *Node) Changes(w *Watcher, now clock.Instant) []Standing {
	p := &picture{}
	for n.picture(p, w.last, now) {
	}
	return w.compare(p)
}

// compare returns what is new in a picture.
func (w *Watcher) compare(p *picture) []Standing {
	for len(w.told) < p.roles {
		w.told = append(w.told, unknownToken)
	}
	w.told = w.told[:p.roles]
	for shard, parts := range p.parts {
		for slice, part := range parts {
			if w.last.part(shard, slice, int32(len(part.keys))) != part {
				w.look(p, part)
			}
		}
	}
	w.last = p
	out := w.out
	w.grouped = grouped{}
	return out
}

func (w *Watcher) look(p *picture, part *pictured) {
	for i, key := range part.keys {
		role := part.shard.Role(part.from + int32(i))
		if role >= len(w.told) || key == w.told[role] {
			continue
		}
		w.told[role] = key
		k := part.of[key]
		if at, holds := p.heard[k.grantee.Session]; holds && at.Mono > k.grantee.Heard.Mono {
			k = &known{key, k.grantee}
			k.grantee.Heard = at
		}
		w.add(part.shard, part.from+int32(i), k)
	}
}

// Changes returns what has changed since w's last call, and the time of the answer. It takes no
// lock if nothing has changed, nor if another Watch has looked within T/50.
func (e *Elector) Changes(w *Watcher) ([]Standing, clock.Instant) {
	if w.last != nil && w.last.turn == e.turn.Load() {
		return nil, e.now()
	}
	return w.compare(e.pictureNow()), e.now()
}

// pictureNow returns a picture of at most T/50 ago in which all changes are.
func (e *Elector) pictureNow() *picture {
	if p := e.pictures.Load().Value(); e.current(p) {
		return p
	}
	e.picturing.Lock()
	defer e.picturing.Unlock()
	last := e.pictures.Load().Value()
	if e.current(last) {
		return last
	}
	p := &picture{turn: e.turn.Load()}
	e.slices(func(n *Node, now clock.Instant) bool { return n.picture(p, last, now) })
	e.keep(p)
	return p
}

func (e *Elector) current(p *picture) bool {
	return p != nil && p.turn == e.turn.Load() && e.now().Age(p.at) < clock.LongestStep(e.node.set.T)
}

// announce tells those who wait for changes that there are some, until done is closed. Very many of
// them are told less often, since each has work to do then.
func (e *Elector) announce(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-e.news:
		}
		e.waiters.Lock()
		n := len(e.watchers)
		for w := range e.watchers {
			ring(w)
		}
		e.waiters.Unlock()
		if n < manyWatchers {
			continue
		}
		rest := time.NewTimer(time.Duration(n) * restPerWatcher)
		select {
		case <-done:
			rest.Stop()
			return
		case <-rest.C:
		}
	}
}

const (
	manyWatchers   = 100
	restPerWatcher = 10 * time.Microsecond
)

// view returns a number that changes whenever the Status of roles may change although no role
// changes hands.
func (s *shard) view(now clock.Instant) uint64 {
	view := uint64(0) // a sum: the holders come in no order
	for h := range s.lease.Holders() {
		bits := h.Session.N << 2
		if now.Raw < h.FreeAt {
			bits |= 1
		}
		if s.old(h.Last) {
			bits |= 2
		}
		view += roster.Hash(h.Session.Process, bits)
	}
	for i, yes := range []bool{s.lease.Known(), caughtUp(s.logs), now.Raw >= s.lease.FreeAt(s.lease.Roles())} {
		if yes {
			view += roster.Hash("", uint64(i))
		}
	}
	return view
}
