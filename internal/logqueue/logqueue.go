// Package logqueue delivers log lines to an application's slog.Handler on a goroutine of its own, so
// that no other goroutine of this library waits for the handler, whatever it does: block, panic or
// end its goroutine. Only New calls it on the caller's goroutine, to ask for its levels.
//
// Lines keep their order and their time. While the handler is busy, up to Most lines wait; later
// ones are dropped and counted. A line that the handler fails to take is counted, too. Once it takes
// lines again, one of them says how many were lost.
//
// The goroutine runs only while there is something to deliver.
package logqueue

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Most is how many lines may wait. Debug lines are dropped at half of it, so that they leave room for the others.
const Most = 1024

// levelsEvery is how often the handler is asked which levels it wants, as an application may change
// them while it runs.
const levelsEvery = time.Second

// Queue holds the lines for one handler. A nil Queue has no lines.
type Queue struct {
	root *handler // with the attributes of all lines

	levels atomic.Uint32 // bit i: level i is enabled, as the handler last said
	asked  atomic.Int64  // when it was asked, since born
	born   time.Time

	mu      sync.Mutex // never held while the handler is called
	lines   []line
	working bool          // a goroutine delivers
	idle    chan struct{} // closed when it ends
	ask     bool          // ask for the levels
	lost    uint64
	untold  int    // how many of the lost lines were not reported yet
	failing bool   // the handler failed to take the last line
	why     string // why the last of these lines was lost
}

type line struct {
	to     *handler
	ctx    context.Context
	record slog.Record
}

// New returns a logger that queues its lines for h, each with the given attributes. The Queue is nil
// if h discards all.
func New(h slog.Handler, attrs ...any) (*slog.Logger, *Queue) {
	if h == slog.DiscardHandler {
		return slog.New(h), nil
	}
	q := &Queue{born: time.Now()}
	q.levels.Store(levelsOf(h))
	base := &handler{q: q, made: h}
	log := slog.New(base).With(attrs...)
	q.root = log.Handler().(*handler)
	return log, q
}

// Lost returns how many lines were dropped or not taken by the handler.
func (q *Queue) Lost() uint64 {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

// Waiting returns how many lines wait or are with the handler. Asking it for its levels counts as a line.
func (q *Queue) Waiting() int {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.working {
		return len(q.lines) + 1
	}
	return 0
}

// Flush waits until the handler has taken all lines, or until limit fires. It reports whether the handler has.
func (q *Queue) Flush(limit <-chan time.Time) bool {
	if q == nil {
		return true
	}
	for {
		q.mu.Lock()
		working, idle := q.working, q.idle
		q.mu.Unlock()
		if !working {
			return true
		}
		select {
		case <-idle:
		case <-limit:
			return false
		}
	}
}

func (q *Queue) push(l line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	room := Most
	if l.record.Level < slog.LevelInfo {
		room = Most / 2
	}
	if len(q.lines) >= room {
		q.lose("the handler is busy")
		return
	}
	q.report()
	q.lines = append(q.lines, l)
	q.work()
}

// lose counts a lost line. The callers of lose, report and work hold q.mu.
func (q *Queue) lose(why string) { q.lost, q.untold, q.why = q.lost+1, q.untold+1, why }

// report queues a line about the lost lines, unless the handler failed to take the last line.
func (q *Queue) report() {
	if q.untold == 0 || q.failing {
		return
	}
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines were lost", 0)
	r.Add("lines", q.untold, "error", q.why)
	q.untold = 0
	q.lines = append(q.lines, line{q.root, context.Background(), r})
}

// work starts the goroutine that delivers, if none runs.
func (q *Queue) work() {
	if !q.working {
		q.working, q.idle = true, make(chan struct{})
		go q.deliver()
	}
}

// deliver passes lines to the handler until none is left.
func (q *Queue) deliver() {
	over := false
	defer func() {
		if !over { // the handler has ended this goroutine
			go q.deliver()
		}
	}()
	for q.next() {
	}
	over = true
}

// next delivers one line or asks for the levels. It returns false if nothing is left.
func (q *Queue) next() bool {
	q.mu.Lock()
	if q.ask {
		q.ask = false
		q.mu.Unlock()
		q.call(func() error { q.levels.Store(levelsOf(q.root.resolve())); return nil }) // if it fails, the levels stay as they are
		return true
	}
	if len(q.lines) == 0 {
		q.report()
	}
	if len(q.lines) == 0 {
		q.lines, q.working = nil, false
		close(q.idle)
		q.mu.Unlock()
		return false
	}
	l := q.lines[0]
	q.lines[0] = line{}
	q.lines = q.lines[1:]
	q.mu.Unlock()
	why := "the handler ended its goroutine"
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.failing = why != ""; q.failing {
			q.lose(why)
		}
	}()
	why = q.call(func() error { return l.to.deliver(l.ctx, l.record) })
	return true
}

// call calls the handler's methods, and returns what went wrong.
func (q *Queue) call(do func() error) (wrong string) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Sprintf("the handler panicked: %v", r)
		}
	}()
	if err := do(); err != nil {
		return "the handler failed: " + err.Error()
	}
	return ""
}

// enabled reports whether the handler last said that it wants a level.
func (q *Queue) enabled(level slog.Level) bool {
	now := int64(time.Since(q.born))
	if last := q.asked.Load(); now-last >= int64(levelsEvery) && q.asked.CompareAndSwap(last, now) {
		q.mu.Lock()
		q.ask = true
		q.work()
		q.mu.Unlock()
	}
	return q.levels.Load()&bit(level) != 0
}

var levels = []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

// bit returns the bit of the highest of levels that is not above level.
func bit(level slog.Level) uint32 {
	i := len(levels) - 1
	for i > 0 && level < levels[i] {
		i--
	}
	return 1 << i
}

func levelsOf(h slog.Handler) (set uint32) {
	for _, l := range levels {
		if h.Enabled(context.Background(), l) {
			set |= bit(l)
		}
	}
	return set
}

// handler queues lines. It applies WithAttrs and WithGroup to the application's handler only when a
// line is delivered, since they are the application's code, too.
type handler struct {
	q      *Queue
	parent *handler // nil: made is the application's handler
	attrs  []slog.Attr
	group  string
	made   slog.Handler // used by the delivering goroutine; nil: not made yet
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return h.q.enabled(level) }

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	h.q.push(line{h, ctx, r})
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{q: h.q, parent: h, attrs: attrs}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{q: h.q, parent: h, group: name}
}

func (h *handler) resolve() slog.Handler {
	if h.made == nil {
		if of := h.parent.resolve(); h.group != "" {
			h.made = of.WithGroup(h.group)
		} else {
			h.made = of.WithAttrs(h.attrs)
		}
	}
	return h.made
}

func (h *handler) deliver(ctx context.Context, r slog.Record) error {
	to := h.resolve()
	if !to.Enabled(ctx, r.Level) { // the levels may have changed since
		return nil
	}
	return to.Handle(ctx, r)
}
