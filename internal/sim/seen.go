package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Seen counts what happens in many runs, so that a test can assert that its cases occurred. Its
// methods may be called concurrently.
type Seen struct {
	mu sync.Mutex
	n  map[string]int
	d  map[string]time.Duration // the longest of a kind
}

// NewSeen returns an empty Seen.
func NewSeen() *Seen { return &Seen{n: map[string]int{}, d: map[string]time.Duration{}} }

// Count counts something that has happened.
func (s *Seen) Count(what string) { s.add(what, 1) }

func (s *Seen) add(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n[what] += n
}

func (s *Seen) longest(what string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n[what]++
	s.d[what] = max(s.d[what], d)
}

// Of returns how often something has happened.
func (s *Seen) Of(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n[what]
}

func (s *Seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(s.n)) {
		fmt.Fprintf(&b, "%8d  %s", s.n[what], what)
		if d, ok := s.d[what]; ok {
			fmt.Fprintf(&b, " (longest %v)", d.Round(time.Millisecond))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
