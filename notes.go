package neli

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// limiter keeps trouble that repeats from filling the log.
type limiter struct {
	last atomic.Int64 // monotonic nanoseconds: a wall clock that is set back must not silence it
}

// due reports whether it is time for another line: at most one in ten seconds.
func (l *limiter) due() bool {
	now, last := int64(time.Since(epoch)), l.last.Load()
	return now-last > int64(10*time.Second) && l.last.CompareAndSwap(last, now)
}

// notes collects log lines while a mutex is held, to be written once it is not:
// a log handler is the user's code, and may be slow or call back.
type notes struct {
	log  *slog.Logger
	list []note
}

type note struct {
	level slog.Level
	text  string
	args  []any
}

func (n *notes) add(level slog.Level, text string, args ...any) {
	n.list = append(n.list, note{level, text, args})
}

// take returns a function that writes what was collected.
func (n *notes) take() func() {
	if len(n.list) == 0 {
		return func() {}
	}
	list := n.list
	n.list = nil
	return func() {
		for _, e := range list {
			n.log.Log(context.Background(), e.level, e.text, e.args...)
		}
	}
}
