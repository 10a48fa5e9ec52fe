package kafkalog

import (
	"context"
	"slices"
	"sync"
	"time"
)

// stillAfter is the least time after which a reader is taken to stand still. A client
// itself needs about three seconds to give up a silent connection.
const stillAfter = 5 * time.Second

// stillMost bounds how long a reader that was replaced in vain is given before the next
// replacement.
const stillMost = 5 * time.Minute

// stillness decides whether a log reader stands still: a log is known to have records that
// were not read, and the client returns none. This process knows of them because it has
// appended them itself and they were acknowledged, or because it has asked where the log
// ends. All times are given to it. Its methods may be called concurrently.
type stillness struct {
	lease time.Duration // T

	mu   sync.Mutex
	logs []silence // by partition
}

// silence is what stillness knows of one partition.
type silence struct {
	next     int64         // the offset to be read next
	read     time.Time     // when a record was last read, or reading began anew
	proved   bool          // a record that was handed over after that is acknowledged
	ends     bool          // the log was seen to end behind next
	waited   time.Duration // how long Poll has returned nothing since one of these
	patience time.Duration // how long it may
	anew     bool          // it has stood still, and was assigned anew, since a record was read
}

// limit is how long Poll may return nothing. What was found by asking was there before, for
// up to five eighths of T (compareEnds).
func (l *silence) limit() time.Duration {
	if l.ends {
		return max(l.patience/2, stillAfter)
	}
	return l.patience
}

func newStillness(partitions int, t time.Duration) *stillness {
	s := &stillness{lease: t, logs: make([]silence, partitions)}
	for p := range s.logs {
		s.logs[p].patience = max(t, stillAfter)
	}
	return s
}

// begin takes note that reading of p begins anew, at an offset.
func (s *stillness) begin(p int, offset int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[p] = silence{next: offset, read: now, patience: s.logs[p].patience, anew: s.logs[p].anew}
}

// acknowledged takes note that a record handed over at a time is in the log of p.
func (s *stillness) acknowledged(p int, handed time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := &s.logs[p]; handed.After(l.read) {
		l.proved = true
	}
}

// end takes note of where the log of p ends.
func (s *stillness) end(p int, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.logs[p]
	l.ends = l.ends || offset > l.next
}

// got takes note that the record of p at an offset was read.
func (s *stillness) got(p int, offset int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[p] = silence{next: offset + 1, read: now, patience: max(s.lease, stillAfter)}
}

// waited takes note that a Poll returned nothing for d, and returns the partitions that
// stand still. Only time in Poll counts: a process that was suspended has not asked.
func (s *stillness) waited(d time.Duration) (still []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.logs {
		l := &s.logs[p]
		if !l.proved && !l.ends {
			continue
		}
		if l.waited += d; l.waited >= l.limit() {
			still = append(still, p)
		}
	}
	return still
}

// assignAnew reports whether it is to be tried first to read the partitions that stand still
// anew by the same client: others were read meanwhile, and it was not tried yet. Then these
// begin anew.
func (s *stillness) assignAnew(still []int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	others := false
	for p, l := range s.logs {
		switch {
		case !slices.Contains(still, p):
			others = others || now.Sub(l.read) < l.patience
		case l.anew:
			return false
		}
	}
	if !others {
		return false
	}
	for _, p := range still {
		l := &s.logs[p]
		*l = silence{next: l.next, read: now, patience: l.patience, anew: true}
	}
	return true
}

// silent reports whether no log was read from for d.
func (s *stillness) silent(d time.Duration, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.logs, func(l silence) bool { return now.Sub(l.read) < d })
}

// restart begins anew with all partitions: the client was replaced, or has said what is
// wrong. Those that stood still are given twice the time before the next replacement.
func (s *stillness) restart(now time.Time, still []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.logs {
		l := &s.logs[p]
		l.read, l.proved, l.ends, l.waited = now, false, false, 0
	}
	for _, p := range still {
		l := &s.logs[p]
		l.patience = min(2*l.patience, max(l.patience, stillMost))
	}
}

// compareEnds asks where the logs end whenever nothing was read for half of T, until ctx is
// done. A process that appends nothing, as an observer does, cannot know in another way that
// there is something to read.
func (k *kafkaLog) compareEnds(ctx context.Context) {
	tick := time.NewTicker(max(k.lease/8, 250*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !k.still.silent(max(k.lease/2, time.Second), time.Now()) {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, max(k.lease/2, time.Second))
		ends, err := k.topic.Admin.Offsets(asking, k.topic.name, k.topic.Size)
		cancel()
		if err != nil {
			continue // the watch of the topic says so
		}
		for p, e := range ends {
			k.still.end(p, e.End)
		}
	}
}
