package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
)

// picture looks at the next slices that may have changed since the last picture, which may be nil,
// and reports whether there are more.
func (n *Node) picture(c *cursor, p, last *observe.Picture, now clock.Instant) (more bool) {
	if !p.Begun() {
		p.Begin(n.desired.Roles, len(n.shards))
		for _, s := range n.shards {
			p.Hear(s.lease.Holders())
		}
	}
	var of *shard
	view := uint64(0)
	for looked := int32(0); looked < observe.SurveyRoles; {
		s, from, to, ok := n.slice(c)
		if !ok {
			p.Finish(now)
			return false
		}
		if s != of {
			of, view = s, s.View(now)
		}
		looked += p.Look(s.Numbering, &s.Standings, from, to, view, last, s.claims.SaidSilent, now)
	}
	return true
}

// Changes returns what w was not told yet of the roles below R, and marks it as told. It leaves
// out unknown roles, unless they were known before.
func (n *Node) Changes(w *observe.Watcher, now clock.Instant) []observe.Standing {
	p, c := observe.NewPicture(0), cursor{}
	for n.picture(&c, p, w.Last, now) {
	}
	return w.Compare(p)
}

// Changes returns what has changed since w's last call, and the time of the answer. It takes no
// lock if nothing has changed, nor if another Watch has looked within T/50.
func (e *Elector) Changes(w *observe.Watcher) ([]observe.Standing, clock.Instant) {
	if w.Knows(e.turn.Load()) {
		return nil, e.now()
	}
	return w.Compare(e.pictureNow()), e.now()
}

// pictureNow returns a picture of at most T/50 ago in which all changes are.
func (e *Elector) pictureNow() *observe.Picture {
	if p := e.pictures.Load().Value(); e.current(p) {
		return p
	}
	e.picturing.Lock()
	defer e.picturing.Unlock()
	last := e.pictures.Load().Value()
	if e.current(last) {
		return last
	}
	p, c := observe.NewPicture(e.turn.Load()), cursor{}
	e.slices(func(n *Node, now clock.Instant) bool { return n.picture(&c, p, last, now) })
	e.keep(p)
	return p
}

func (e *Elector) current(p *observe.Picture) bool {
	return p.IsOf(e.turn.Load(), clock.LongestStep(e.node.set.T), e.now())
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
