package cli

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// mostLines is how many lines of the log wait at most while standard error takes none.
	mostLines = 1000
	// lastLines is how long the last lines may take to be written when the process ends.
	lastLines = time.Second
)

// logWriter writes lines to standard error on a goroutine of its own. Nobody who logs waits for it: a
// pipe that is full, a terminal that is stopped or a disk that is full must not end a term. Lines that
// standard error does not take are dropped and counted.
type logWriter struct {
	out  io.Writer
	news chan struct{} // there are lines, or the end
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	lines   [][]byte
	dropped int
	over    bool
}

func newLogWriter(out io.Writer) *logWriter {
	w := &logWriter{out: out, news: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Write implements io.Writer. It never waits and never fails.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) < mostLines && !w.over {
		w.lines = append(w.lines, bytes.Clone(line))
		w.wake()
	} else {
		w.dropped++
	}
	return len(line), nil
}

func (w *logWriter) wake() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// close waits until all lines are written, but no longer than lastLines. Lines logged after it are dropped.
func (w *logWriter) close() {
	w.mu.Lock()
	w.over = true
	w.wake()
	w.mu.Unlock()
	timer := time.NewTimer(lastLines)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
	}
}

func (w *logWriter) run() {
	defer close(w.done)
	for range w.news {
		lines, dropped, over := w.take()
		for _, line := range lines {
			if _, err := w.out.Write(line); err != nil {
				dropped++ // the reader has gone, or the disk is full
			}
		}
		if !w.tell(dropped) {
			w.mu.Lock()
			w.dropped += dropped // reported when lines can be written again
			w.mu.Unlock()
		}
		if over {
			return
		}
	}
}

func (w *logWriter) take() (lines [][]byte, dropped int, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines, dropped, over = w.lines, w.dropped, w.over
	w.lines, w.dropped = nil, 0
	return lines, dropped, over
}

// tell writes how many lines are missing, and reports whether that worked.
func (w *logWriter) tell(dropped int) bool {
	if dropped == 0 {
		return true
	}
	note := &tried{out: w.out}
	slog.New(slog.NewTextHandler(note, nil)).Warn("log lines were dropped: standard error did not take them in time", "dropped", dropped)
	return note.err == nil
}

// tried keeps the error of a Write, which a slog.Logger does not return.
type tried struct {
	out io.Writer
	err error
}

func (t *tried) Write(b []byte) (n int, err error) {
	n, t.err = t.out.Write(b)
	return n, t.err
}
