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

// Samples is where a member records what it sees of its own leadership: one entry for each run of equal answers, which
// every sample updates in place. The member and its parent share this memory. So nothing is lost if the member is
// killed, and the parent sees events as they happen.
type Samples struct {
	words []atomic.Int64
	bytes []byte
}

// The first word is the number of runs. The rest of the header are notes. After the header come the runs, of runWords
// each.
const (
	headerWords = 16
	runWords    = 8
	maxRuns     = 1 << 14
	sampleBytes = (headerWords + maxRuns*runWords) * 8
)

// BreakAfter is the longest time between two samples of one run.
const BreakAfter = 50 * time.Millisecond

// Open maps a file into memory; member and parent both do. It takes no space until it is written to. The mapping stays
// when the file is closed.
func Open(f *os.File) (*Samples, error) {
	if err := f.Truncate(sampleBytes); err != nil { // no change for the second process
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, sampleBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", f.Name(), err)
	}
	// Two processes use it, so all accesses are atomic, of whole words.
	words := unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&b[0])), len(b)/8)
	return &Samples{words: words, bytes: b}, nil
}

// Close unmaps the memory.
func (s *Samples) Close() error { return unix.Munmap(s.bytes) }

// Take adds a sample to run i, the last one of its role, if the answer is the same and sampling has not paused.
// Otherwise, and for run −1, it begins another run. It returns the number of the run, for the next sample of that
// role.
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

// begin adds a run of one sample, and returns its number. It updates the count last, so that a reader sees a complete
// entry or none.
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

// extend adds a sample to run i. A reader or SIGKILL may come between any two of these writes: then the run proves one
// sample less.
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

// Latest returns the present run of one role.
func (s *Samples) Latest(neli, role int) (Run, bool) {
	for i := s.count() - 1; i >= 0; i-- {
		if r := s.run(i); r.Neli == neli && r.Role == role {
			return r, true
		}
	}
	return Run{}, false
}

// Note stores a number next to the runs. Its user gives it a meaning. There are fifteen of them, numbered from 0, and
// all are 0 at first.
func (s *Samples) Note(i int, n int64) { s.words[1:headerWords][i].Store(n) }

// Noted returns the number that Note stored.
func (s *Samples) Noted(i int) int64 { return s.words[1:headerWords][i].Load() }

// Now reads the machine's monotonic clock. It is the same for all processes, and Go's time package reads it, too.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("reading the monotonic clock: %v", err))
	}
	return time.Duration(ts.Nano())
}
