package kafkalog

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// throttled is any client.
type throttled interface{ Throttled() time.Duration }

// Throttling adds up how long the brokers have made the clients of one Neli wait, and logs it. A
// quota delays beats and claims like a slow network, and terms would lapse without a visible
// reason.
type Throttling struct {
	mu      sync.Mutex
	clients map[string]throttled // by purpose
	past    time.Duration        // of replaced clients
	told    time.Duration        // in the last log line
	last    Limiter
}

// follow adds a client, and replaces the former one with the same purpose.
func (t *Throttling) follow(what string, c throttled) {
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

func (t *Throttling) Total() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.past
	for _, c := range t.clients {
		sum += c.Throttled()
	}
	return sum
}

// look logs the waits since the last line, at most once in ten seconds.
func (t *Throttling) look(log *slog.Logger) {
	sum := t.Total()
	t.mu.Lock()
	more := sum - t.told
	due := more > 0 && t.last.Due()
	if due {
		t.told = sum
	}
	t.mu.Unlock()
	if due {
		log.Warn("brokers make this process wait, as a quota of its user or client.id is exceeded: terms may lapse", "wait", more, "total", sum)
	}
}

// Limiter keeps repeated trouble from filling the log.
type Limiter struct {
	last atomic.Int64 // monotonic: a wall clock that is set back must not silence it
}

// Due reports whether another line may be logged: at most one in ten seconds.
func (l *Limiter) Due() bool {
	now, last := int64(clock.Glance().Mono), l.last.Load()
	return now-last > int64(10*time.Second) && l.last.CompareAndSwap(last, now)
}

// Trouble is a Limiter that also logs the end of the trouble.
type Trouble struct {
	Limiter
	since atomic.Int64 // monotonic: when the trouble began; 0: there is none
	told  atomic.Bool  // it was logged
}

// Due notes trouble, and reports whether another line may be logged.
func (t *Trouble) Due() bool {
	t.since.CompareAndSwap(0, max(1, int64(clock.Glance().Mono)))
	due := t.Limiter.Due()
	if due {
		t.told.Store(true)
	}
	return due
}

// Over notes that the trouble has ended, and logs that and how long it lasted, if the trouble was logged.
func (t *Trouble) Over(log *slog.Logger, text string, args ...any) {
	if t.since.Load() == 0 {
		return
	}
	since := t.since.Swap(0)
	if since != 0 && t.told.Swap(false) {
		lasted := time.Duration(int64(clock.Glance().Mono) - since)
		log.Info(text, append(args, "after", lasted.Round(time.Millisecond))...)
	}
}

// Contact records whether a broker, or the host of a small log, has ever answered. The methods of
// a nil Contact do nothing.
type Contact struct{ made atomic.Bool }

func (c *Contact) note(answered bool) {
	if c != nil && answered {
		c.made.Store(true)
	}
}

func (c *Contact) Lacking() bool { return c != nil && !c.made.Load() }
