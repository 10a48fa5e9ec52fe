package neli

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// limiter keeps trouble that repeats from filling the log.
type limiter struct {
	last atomic.Int64 // monotonic: a wall clock that is set back must not silence it
}

// due reports whether it is time for another line: at most one in ten seconds.
func (l *limiter) due() bool {
	now, last := int64(clock.Glance().Mono), l.last.Load()
	return now-last > int64(10*time.Second) && l.last.CompareAndSwap(last, now)
}

// trouble is a limiter that also tells when the trouble is over.
type trouble struct {
	limiter
	since atomic.Int64 // monotonic: when it began; 0: there is none
	told  atomic.Bool  // a line has told of it
}

// due takes note of trouble, and reports whether it is time for another line.
func (t *trouble) due() bool {
	t.since.CompareAndSwap(0, max(1, int64(clock.Glance().Mono)))
	due := t.limiter.due()
	if due {
		t.told.Store(true)
	}
	return due
}

// over takes note that all is well, and logs that and how long the trouble lasted if a
// line had told of it.
func (t *trouble) over(log *slog.Logger, text string, args ...any) {
	if t.since.Load() == 0 {
		return
	}
	since := t.since.Swap(0)
	if since != 0 && t.told.Swap(false) {
		lasted := time.Duration(int64(clock.Glance().Mono) - since)
		log.Info(text, append(args, "after", lasted.Round(time.Millisecond))...)
	}
}

// contact is whether a broker, or what hosts a small log, has ever answered. A nil one
// takes no notes.
type contact struct{ made atomic.Bool }

func (c *contact) note(answered bool) {
	if c != nil && answered {
		c.made.Store(true)
	}
}

func (c *contact) lacking() bool { return c != nil && !c.made.Load() }
