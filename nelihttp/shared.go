package nelihttp

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/goneli/neli"
)

// shared gives one result to all who ask while it is computed, and for some time after that.
type shared[T any] struct {
	compute func() T

	mu     sync.Mutex
	newest *turn[T] // the one that began last
}

// turn is one computation.
type turn[T any] struct {
	done  chan struct{} // closed when the rest is set
	value T
	ok    bool      // compute has not panicked
	until time.Time // from then on the value is too old
}

// get returns a value that is not too old. A computation that is under way is waited for.
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

// fresh returns a value of now. Whoever asks from now on gets no older one.
func (s *shared[T]) fresh() T {
	s.mu.Lock()
	t := s.begin()
	s.mu.Unlock()
	s.run(t)
	return t.value
}

// forget has the next one who asks get a value of then.
func (s *shared[T]) forget() {
	s.mu.Lock()
	s.newest = nil
	s.mu.Unlock()
}

// begin needs the lock.
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

// restAfter is how long nothing is computed anew after something took this long.
func restAfter(took time.Duration) time.Duration { return max(pace, restPerLook*took) }

// glance is what was known at one instant, and what is made of it for those who do not search.
type glance struct {
	at        time.Time
	standings []neli.Standing
	sizes     []int // how many roles each is of

	page     shared[text]
	overview shared[text] // JSON
}

// text is a body, or why there is none.
type text struct {
	body []byte
	err  error
}

// look asks the library.
func (h *handler) look() *glance {
	g := &glance{standings: h.src.Standings(), at: time.Now()}
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
