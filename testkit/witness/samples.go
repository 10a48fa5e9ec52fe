//go:build unix

package witness

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Samples is where a member keeps what it saw of its own leadership: one entry for
// each run of equal answers, updated in place by every sample. It is memory that
// the member and its parent share, so that a member that is killed has lost nothing,
// and that the parent sees what happens while it happens.
type Samples struct {
	words []atomic.Int64
	bytes []byte
}

// The first word is how many runs there are. The rest of the header are notes, the
// rest of all are runs of runWords each.
const (
	headerWords = 16
	runWords    = 8
	maxRuns     = 1 << 14
	sampleBytes = (headerWords + maxRuns*runWords) * 8
)

// BreakAfter is how far apart samples may lie within one run.
const BreakAfter = 50 * time.Millisecond

// Open maps a file, which member and parent both do. It takes no space until it is
// written to; and the mapping lives on when the file is closed.
func Open(f *os.File) (*Samples, error) {
	if err := f.Truncate(sampleBytes); err != nil { // to what it has, for the second one
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, sampleBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", f.Name(), err)
	}
	// Two processes use it: whole words, written and read at once.
	words := unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&b[0])), len(b)/8)
	return &Samples{words: words, bytes: b}, nil
}

// Close unmaps the memory.
func (s *Samples) Close() error { return unix.Munmap(s.bytes) }

// Take adds a sample to run i, the last one of its role, if the answer is the same
// and sampling has not paused; or else, as for run −1, it begins another one. It
// returns the number of the run, for the next sample of that role.
func (s *Samples) Take(i, neli, role int, answer int64, w Window) int {
	if i >= 0 {
		if r := s.run(i); r.Answer == answer && w.Before-r.Last.After <= BreakAfter {
			s.extend(i, w)
			return i
		}
	}
	return s.begin(neli, role, answer, w)
}

func (s *Samples) count() int { return int(s.words[0].Load()) }

func (s *Samples) entry(i int) []atomic.Int64 {
	at := headerWords + i*runWords
	return s.words[at : at+runWords]
}

// begin adds a run of one sample and returns its number. The count comes last: a
// reader sees an entry that is complete, or none.
func (s *Samples) begin(neli, role int, answer int64, w Window) int {
	i := s.count()
	if i == maxRuns {
		panic("more changes of leadership than there is room for")
	}
	e := s.entry(i)
	e[0].Store(int64(neli)<<32 | int64(role))
	e[1].Store(answer)
	for j, v := range []time.Duration{w.Before, w.After, w.Before, w.After} {
		e[2+j].Store(int64(v))
	}
	e[6].Store(1)
	s.words[0].Store(int64(i + 1))
	return i
}

// extend adds a sample to run i. A reader, or SIGKILL, may come between any two of
// these: what is proven is then a sample less.
func (s *Samples) extend(i int, w Window) {
	e := s.entry(i)
	if gap := int64(w.Before) - e[5].Load(); gap > e[7].Load() {
		e[7].Store(gap)
	}
	e[4].Store(int64(w.Before))
	e[5].Store(int64(w.After))
	e[6].Add(1)
}

func (s *Samples) run(i int) Run {
	e := s.entry(i)
	d := func(j int) time.Duration { return time.Duration(e[j].Load()) }
	key := e[0].Load()
	return Run{
		Neli: int(key >> 32), Role: int(key & (1<<32 - 1)),
		Answer: e[1].Load(),
		First:  Window{d(2), d(3)}, Last: Window{d(4), d(5)},
		Samples: e[6].Load(), Gap: d(7),
	}
}

// Runs returns all runs, in order.
func (s *Samples) Runs() Runs {
	runs := make(Runs, s.count())
	for i := range runs {
		runs[i] = s.run(i)
	}
	return runs
}

// Latest returns the run of one role that is going on.
func (s *Samples) Latest(neli, role int) (Run, bool) {
	for i := s.count() - 1; i >= 0; i-- {
		if r := s.run(i); r.Neli == neli && r.Role == role {
			return r, true
		}
	}
	return Run{}, false
}

// Note keeps a number beside the runs that its user gives a meaning: one of fifteen,
// from 0, which all are 0 at first.
func (s *Samples) Note(i int, n int64) { s.words[1:headerWords][i].Store(n) }

// Noted returns what Note has kept.
func (s *Samples) Noted(i int) int64 { return s.words[1:headerWords][i].Load() }

// Now reads the machine's monotonic clock, the same one for all processes and the
// one that Go's time package reads.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("reading the monotonic clock: %v", err))
	}
	return time.Duration(ts.Nano())
}
