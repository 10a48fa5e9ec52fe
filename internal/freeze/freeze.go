// Package freeze lets package nelitest simulate the moment at which a suspended process wakes,
// before any code of package neli has run.
//
// A test cannot stop the goroutines of the program under test. But it can let them see what they
// would see: the clock has moved on, so that all leases are over for any code that asks, and
// package neli itself has not told them anything.
package freeze

import (
	"sync"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// Freezer is a Provider that can freeze the process that it was made for.
type Freezer interface{ Frozen() *State }

// State says whether a process is frozen. Its methods may be called concurrently. A nil State is never frozen.
type State struct {
	mu   sync.Mutex
	thaw chan struct{} // closed when the freeze ends; nil: there is none
}

// Freeze begins a freeze, unless there is one.
func (s *State) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.thaw == nil {
		s.thaw = make(chan struct{})
	}
}

// Thaw ends a freeze, if there is one.
func (s *State) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.thaw != nil {
		close(s.thaw)
		s.thaw = nil
	}
}

func (s *State) end() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.thaw
}

// Wait returns once the process is not frozen.
func (s *State) Wait() {
	if s == nil {
		return
	}
	for end := s.end(); end != nil; end = s.end() {
		<-end
	}
}

// jump is longer than any lease.
const jump = 50 * 365 * 24 * time.Hour

// Clock returns a clock that shows what now shows, except that during a freeze it shows a time at
// which every lease is over.
func (s *State) Clock(now func() clock.Instant) func() clock.Instant {
	if s == nil {
		return now
	}
	return func() clock.Instant {
		at := now()
		if s.end() != nil {
			at = at.Add(jump)
		}
		return at
	}
}
