package history

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
// member and runner share, so that a member that is killed has lost nothing, and
// that the runner sees what happens while it happens.
type Samples struct {
	words []atomic.Int64
	bytes []byte
}

// Words of the header; the rest are runs of runWords each.
const (
	wordRuns    = iota // how many runs there are
	wordRead           // when each mode read a record last
	headerWords = 16
	runWords    = 8
	maxRuns     = 1 << 14
	sampleBytes = (headerWords + maxRuns*runWords) * 8
)

// BreakAfter is how far apart samples may lie within one run.
const BreakAfter = 50 * time.Millisecond

// NewSamples makes an empty one and the file by which another process opens it.
func NewSamples(name string) (*Samples, *os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("making memory to share: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	err = f.Truncate(sampleBytes)
	if err == nil {
		var s *Samples
		if s, err = OpenSamples(f); err == nil {
			return s, f, nil
		}
	}
	_ = f.Close()
	return nil, nil, err
}

// OpenSamples maps the memory, which lives on when the file is closed.
func OpenSamples(f *os.File) (*Samples, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, sampleBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping shared memory: %w", err)
	}
	// Two processes use it: whole words, written and read at once.
	words := unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&b[0])), len(b)/8)
	return &Samples{words: words, bytes: b}, nil
}

// Close unmaps the memory.
func (s *Samples) Close() error { return unix.Munmap(s.bytes) }

func (s *Samples) entry(i int) []atomic.Int64 {
	at := headerWords + i*runWords
	return s.words[at : at+runWords]
}

// Begin adds a run of one sample and returns its number. The count comes last: a
// reader sees an entry that is complete, or none.
func (s *Samples) Begin(mode, role int, answer int64, w Window) int {
	i := int(s.words[wordRuns].Load())
	if i == maxRuns {
		panic("more changes of leadership than there is room for")
	}
	e := s.entry(i)
	e[0].Store(int64(mode)<<32 | int64(role))
	e[1].Store(answer)
	for j, v := range []time.Duration{w.Before, w.After, w.Before, w.After} {
		e[2+j].Store(int64(v))
	}
	e[6].Store(1)
	s.words[wordRuns].Store(int64(i + 1))
	return i
}

// Extend adds a sample to run i. A reader, or SIGKILL, may come between any two of
// these: what is proven is then a sample less.
func (s *Samples) Extend(i int, w Window) {
	e := s.entry(i)
	if gap := int64(w.Before) - e[5].Load(); gap > e[7].Load() {
		e[7].Store(gap)
	}
	e[4].Store(int64(w.Before))
	e[5].Store(int64(w.After))
	e[6].Add(1)
}

// Read notes when records were read last, in a mode.
func (s *Samples) Read(mode int, at time.Duration) { s.words[wordRead+mode].Store(int64(at)) }

// LastRead returns when records were read last, in a mode; 0 if never.
func (s *Samples) LastRead(mode int) time.Duration {
	return time.Duration(s.words[wordRead+mode].Load())
}

// Run returns run i.
func (s *Samples) Run(i int) Run {
	e := s.entry(i)
	d := func(j int) time.Duration { return time.Duration(e[j].Load()) }
	key := e[0].Load()
	return Run{
		Mode: int(key >> 32), Role: int(key & (1<<32 - 1)),
		Answer: e[1].Load(),
		First:  Window{d(2), d(3)}, Last: Window{d(4), d(5)},
		Samples: e[6].Load(), Gap: d(7),
	}
}

// Runs returns all runs, in order.
func (s *Samples) Runs() []Run {
	runs := make([]Run, s.words[wordRuns].Load())
	for i := range runs {
		runs[i] = s.Run(i)
	}
	return runs
}

// Latest returns the run of one role that is going on.
func (s *Samples) Latest(mode, role int) (Run, bool) {
	for i := int(s.words[wordRuns].Load()) - 1; i >= 0; i-- {
		if r := s.Run(i); r.Mode == mode && r.Role == role {
			return r, true
		}
	}
	return Run{}, false
}
