package neli

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// throttled is any client.
type throttled interface{ Throttled() time.Duration }

// throttling adds up what the clients of one Neli say, and tells of it: a quota
// delays beats and claims like a slow network, and terms lapse for no other reason
// that could be seen.
type throttling struct {
	mu      sync.Mutex
	clients map[string]throttled // by what they are for
	past    time.Duration        // of clients that were replaced
	told    time.Duration        // by the last line
	last    limiter
}

// follow adds a client, in place of the one that was there for the same.
func (t *throttling) follow(what string, c throttled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clients == nil {
		t.clients = map[string]throttled{}
	}
	if old := t.clients[what]; old != nil {
		t.past += old.Throttled()
	}
	t.clients[what] = c
}

func (t *throttling) total() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.past
	for _, c := range t.clients {
		sum += c.Throttled()
	}
	return sum
}

// look logs what has been added since the last line, at most one in ten seconds.
func (t *throttling) look(log *slog.Logger) {
	sum := t.total()
	t.mu.Lock()
	more := sum - t.told
	due := more > 0 && t.last.due()
	if due {
		t.told = sum
	}
	t.mu.Unlock()
	if due {
		log.Warn("brokers make this process wait, as a quota of its user or client.id is exceeded: terms may lapse", "wait", more, "total", sum)
	}
}

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
