package integration

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A sampleFile is where a member keeps what it saw of its own leadership: one
// entry for each run of equal answers, updated in place by every sample. It is a
// file mapped into memory, so that a member that is killed has lost nothing, and
// that the parent sees what happens while it happens.
type sampleFile struct {
	words []atomic.Int64
	bytes []byte
}

// Words of the header; the rest are runs of runWords each.
const (
	wordRuns    = iota // how many runs there are
	wordPasses         // how often all roles were sampled
	wordPassed         // when they were last
	wordRecords        // what contender 0, 1, … has read of its topic
	headerWords = 16
	runWords    = 8
	maxRuns     = 1 << 14
	sampleBytes = (headerWords + maxRuns*runWords) * 8
	breakAfter  = 50 * time.Millisecond // samples further apart do not make one run
)

// createSamples makes an empty file, which takes no space until it is written to.
func createSamples(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(sampleBytes)
}

// openSamples maps a file that createSamples made.
func openSamples(path string) (*sampleFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping has its own hold on the file
	b, err := unix.Mmap(int(f.Fd()), 0, sampleBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	// Two processes use it: whole words, written and read at once.
	words := unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&b[0])), len(b)/8)
	return &sampleFile{words: words, bytes: b}, nil
}

func (f *sampleFile) close() error { return unix.Munmap(f.bytes) }

func (f *sampleFile) count() int { return int(f.words[wordRuns].Load()) }

func (f *sampleFile) entry(i int) []atomic.Int64 {
	at := headerWords + i*runWords
	return f.words[at : at+runWords]
}

// begin adds a run of one sample and returns its number. The count comes last: a
// reader sees an entry that is complete, or none.
func (f *sampleFile) begin(contender, role int, answer int64, w window) int {
	i := f.count()
	if i == maxRuns {
		panic("more changes of leadership than a sample file holds")
	}
	e := f.entry(i)
	e[0].Store(int64(contender)<<32 | int64(role))
	e[1].Store(answer)
	for j, v := range []time.Duration{w.before, w.after, w.before, w.after} {
		e[2+j].Store(int64(v))
	}
	e[6].Store(1)
	f.words[wordRuns].Store(int64(i + 1))
	return i
}

// extend adds a sample to run i. A reader, or SIGKILL, may come between any two of
// these: what is proven is then a sample less.
func (f *sampleFile) extend(i int, w window) {
	e := f.entry(i)
	if gap := int64(w.before) - e[5].Load(); gap > e[7].Load() {
		e[7].Store(gap)
	}
	e[4].Store(int64(w.before))
	e[5].Store(int64(w.after))
	e[6].Add(1)
}

func (f *sampleFile) run(i int) run {
	e := f.entry(i)
	d := func(j int) time.Duration { return time.Duration(e[j].Load()) }
	key := e[0].Load()
	return run{
		contender: int(key >> 32), role: int(key & (1<<32 - 1)),
		answer: e[1].Load(),
		first:  window{d(2), d(3)}, last: window{d(4), d(5)},
		samples: e[6].Load(), gap: d(7),
	}
}

// of returns the runs of one role, in order.
func (f *sampleFile) of(contender, role int) []run {
	var out []run
	for i := range f.count() {
		if r := f.run(i); r.contender == contender && r.role == role {
			out = append(out, r)
		}
	}
	return out
}

// latest returns the run of one role that is going on.
func (f *sampleFile) latest(contender, role int) (run, bool) {
	for i := f.count() - 1; i >= 0; i-- {
		if r := f.run(i); r.contender == contender && r.role == role {
			return r, true
		}
	}
	return run{}, false
}

// monotonic reads the machine's monotonic clock, the same one for all processes
// and the one that Go's time package reads.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("reading the monotonic clock: %v", err))
	}
	return time.Duration(ts.Nano())
}
