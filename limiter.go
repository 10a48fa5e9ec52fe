package neli

import (
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
