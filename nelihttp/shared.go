package nelihttp

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli"
)

// shared returns the same result to all callers while it is computed, and for some time afterwards.
type shared[T any] struct {
	compute func() T

	mu     sync.Mutex
	newest *turn[T] // the computation that began last
}

// turn is one computation.
type turn[T any] struct {
	done  chan struct{} // closed when the other fields are set
	value T
	ok    bool      // compute did not panic
	until time.Time // when the value becomes too old
}

// get returns a value that is not too old. It waits for a computation that runs already.
func (s *shared[T]) get() T {
	for {
		s.mu.Lock()
		t, mine := s.newest, false
		if t == nil || t.tooOld(time.Now()) {
			t, mine = s.begin(), true
		}
		s.mu.Unlock()
		if mine {
			s.run(t)
			return t.value
		}
		<-t.done
		if t.ok {
			return t.value
		}
	}
}

// fresh returns a value that is computed from now on. Later calls return no older one.
func (s *shared[T]) fresh() T {
	s.mu.Lock()
	t := s.begin()
	s.mu.Unlock()
	s.run(t)
	return t.value
}

// forget makes the next call compute a new value.
func (s *shared[T]) forget() {
	s.mu.Lock()
	s.newest = nil
	s.mu.Unlock()
}

// begin starts a computation. The caller holds the lock.
func (s *shared[T]) begin() *turn[T] {
	s.newest = &turn[T]{done: make(chan struct{})}
	return s.newest
}

func (s *shared[T]) run(t *turn[T]) {
	defer close(t.done)
	began := time.Now()
	t.value = s.compute()
	t.until = began.Add(restAfter(time.Since(began)))
	t.ok = true
}

func (t *turn[T]) tooOld(now time.Time) bool {
	select {
	case <-t.done:
		return !t.ok || !now.Before(t.until)
	default:
		return false
	}
}

// restAfter returns how long a value stays valid, given how long its computation took.
func restAfter(took time.Duration) time.Duration { return max(pace, restPerLook*took) }

// glance is what was known at one instant, with the answers made of it for requests without a search.
type glance struct {
	at        time.Time
	standings []neli.Standing
	sizes     []int         // the number of roles of each
	quiet     time.Duration // a holder that was heard longer ago is silent
	cutOff    time.Duration // for how long this process has read nothing, though it should have

	page     shared[text]
	overview shared[text] // JSON
}

// beatOf is the time between a holder's heartbeats, at least T/5.
func beatOf(c neli.Config) time.Duration { return max(c.HeartbeatInterval, c.HeartbeatTimeout/5) }

// who returns what is shown for a Standing: its holder, or that the holder is silent. While this
// process reads nothing, silent holders and vacant roles are shown as unknown.
func (g *glance) who(s neli.Standing) who {
	w := whoOf(s)
	if w.kind == byOne && g.quiet > 0 && s.Holder.Age > g.quiet {
		w = who{kind: unheard}
	}
	if g.cutOff > 0 && (w.kind == unheard || w.kind == vacant) {
		w = who{kind: unknown}
	}
	return w
}

// text is a body, or why there is none.
type text struct {
	body []byte
	err  error
}

// look asks the library for the present Standings.
func (h *handler) look() *glance {
	g := &glance{standings: h.src.Standings(), at: time.Now(), quiet: 2 * beatOf(h.src.Config())}
	if slices.ContainsFunc(g.standings, func(s neli.Standing) bool { return g.who(s).kind != byOne }) {
		g.cutOff = h.src.Stats().CutOff
	}
	g.page.compute = func() text { return h.render(g, "") }
	g.overview.compute = func() text {
		body, err := json.Marshal(h.overview(g, ""))
		return text{body, err}
	}
	g.sizes = make([]int, len(g.standings))
	for i, s := range g.standings {
		for range s.Roles() {
			g.sizes[i]++
		}
	}
	h.past.observe(g)
	return g
}
