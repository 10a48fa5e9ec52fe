package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
)

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
	p := observe.NewPicture(e.turn.Load())
	e.slices(func(n *Node, now clock.Instant) bool { return p.Next(n.observed, n.desired.Roles, last, now) })
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
