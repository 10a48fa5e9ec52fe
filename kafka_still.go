package neli

import (
	"sync"
	"time"
)

// stillAfter is the least time after which a reader is taken to stand still. A client
// itself needs about three seconds to give up a silent connection.
const stillAfter = 5 * time.Second

// stillMost bounds how long a reader that was replaced in vain is given before the next
// replacement.
const stillMost = 5 * time.Minute

// stillness decides whether a log reader stands still: records that this process has
// appended are acknowledged, so they are in the log, and the client returns none. All
// times are given to it. Its methods may be called concurrently.
type stillness struct {
	mu   sync.Mutex
	logs []silence // by partition
}

// silence is what stillness knows of one partition.
type silence struct {
	read     time.Time     // when a record was last read, or reading began anew
	proved   bool          // a record that was handed over after that is acknowledged
	waited   time.Duration // how long Poll has returned nothing since
	patience time.Duration // how long it may
}

func newStillness(partitions int, t time.Duration) *stillness {
	s := &stillness{logs: make([]silence, partitions)}
	for p := range s.logs {
		s.logs[p].patience = max(t, stillAfter)
	}
	return s
}

// acknowledged takes note that a record handed over at a time is in the log of p.
func (s *stillness) acknowledged(p int, handed time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := &s.logs[p]; handed.After(l.read) {
		l.proved = true
	}
}

// got takes note that a record of p was read.
func (s *stillness) got(p int, now time.Time, t time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[p] = silence{read: now, patience: max(t, stillAfter)}
}

// waited takes note that a Poll returned nothing for d, and returns the partitions that
// stand still. Only time in Poll counts: a process that was suspended has not asked.
func (s *stillness) waited(d time.Duration) (still []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.logs {
		l := &s.logs[p]
		if !l.proved {
			continue
		}
		if l.waited += d; l.waited >= l.patience {
			still = append(still, p)
		}
	}
	return still
}

// restart begins anew with all partitions: the client was replaced, or has said what is
// wrong. Those that stood still are given twice the time before the next replacement.
func (s *stillness) restart(now time.Time, still []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.logs {
		l := &s.logs[p]
		l.read, l.proved, l.waited = now, false, 0
	}
	for _, p := range still {
		l := &s.logs[p]
		l.patience = min(2*l.patience, max(l.patience, stillMost))
	}
}
