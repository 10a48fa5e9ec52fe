package main

import "sync"

// manyShort is the number of useless terms in a row after which a relay warns.
const manyShort = 3

// shortTerms counts, for each slot, the terms in a row that this process lost before they were of use. A term begins
// with a dozen requests. If leadership never lasts that long, as on an overloaded machine, a slot stands still although
// it always finds a leader.
type shortTerms struct {
	mu     sync.Mutex
	inARow map[int]int
}

// ended notes the end of a term, and returns how many useless ones were lost in a row. lost says that the lease has
// lapsed. A term that was given up says nothing about the machine.
func (s *shortTerms) ended(slot int, useful, lost bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inARow == nil {
		s.inARow = map[int]int{}
	}
	switch {
	case useful:
		s.inARow[slot] = 0
	case lost:
		s.inARow[slot]++
	}
	return s.inARow[slot]
}
