package kafkalog

import (
	"context"
	"slices"
	"sync"
	"time"
)

// stillAfter is the least time after which a reader counts as standing still. A client needs about
// three seconds to give up a silent connection.
const stillAfter = 5 * time.Second

// stillMost limits how long a reader may stand still when earlier replacements did not help.
const stillMost = 5 * time.Minute

// stillness decides when a log reader stands still: the log is known to have unread records, and
// the client returns none. This process knows of such records because its own appends were
// acknowledged, or because it has asked where the log ends. All times are passed in. The methods
// may be called concurrently.
type stillness struct {
	T time.Duration // HeartbeatTimeout

	mu   sync.Mutex
	logs []silence // by partition
}

// silence is the state of one partition.
type silence struct {
	next     int64         // the next offset to read
	read     time.Time     // when a record was last read, or reading began again
	proved   bool          // a record handed to the client since then was acknowledged
	ends     bool          // the log was found to end after next
	waited   time.Duration // how long Poll has waited since proved or ends was set
	patience time.Duration // the limit of waited, unless ends is set
	anew     bool          // it stood still and was assigned again; no record was read since
}

// limit is how long Poll may wait. A record found by asking may have been there for up to five
// eighths of T (compareEnds).
func (l *silence) limit() time.Duration {
	if l.ends {
		return max(l.patience/2, stillAfter)
	}
	return l.patience
}

func newStillness(partitions int, t time.Duration) *stillness {
	s := &stillness{T: t, logs: make([]silence, partitions)}
	for p := range s.logs {
		s.logs[p].patience = max(t, stillAfter)
	}
	return s
}

// begin notes that reading of p begins again at an offset.
func (s *stillness) begin(p int, offset int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[p] = silence{next: offset, read: now, patience: s.logs[p].patience, anew: s.logs[p].anew}
}

// acknowledged notes that a record handed to the client at the time handed is in the log of p.
func (s *stillness) acknowledged(p int, handed time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := &s.logs[p]; handed.After(l.read) {
		l.proved = true
	}
}

// end notes where the log of p ends.
func (s *stillness) end(p int, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.logs[p]
	l.ends = l.ends || offset > l.next
}

// got notes that the record of p at an offset was read.
func (s *stillness) got(p int, offset int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[p] = silence{next: offset + 1, read: now, patience: max(s.T, stillAfter)}
}

// waited notes that Poll has waited for d, and returns the partitions that stand still. Only time in
// Poll counts, since a suspended process has not polled. Time that ended with a record of another
// partition counts, too: in a busy topic hardly any Poll returns nothing.
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

// assignAnew reports whether first to assign the partitions that stand still to the same client
// again: that was not tried yet, and others were read meanwhile. If so, it begins again with these
// partitions.
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

// silent reports whether no log was read for d.
func (s *stillness) silent(d time.Duration, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.logs, func(l silence) bool { return now.Sub(l.read) < d })
}

// restart begins again with all partitions, after a new client or an error that explains the
// silence. Partitions that stood still get twice the time before the next replacement.
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

// compareEnds asks where the logs end whenever nothing was read for half of T, until ctx is done.
// A process that appends nothing, such as an observer, has no other way to know that there is
// something to read.
func (k *kafkaLog) compareEnds(ctx context.Context) {
	tick := time.NewTicker(max(k.T/8, 250*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !k.still.silent(max(k.T/2, time.Second), time.Now()) {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, max(k.T/2, time.Second))
		ends, err := k.topic.Admin.Offsets(asking, k.topic.name, k.topic.Size)
		cancel()
		if err != nil {
			continue // the watch of the topic reports it
		}
		for p, e := range ends {
			k.still.end(p, e.End)
		}
	}
}
