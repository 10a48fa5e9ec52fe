package neli

import (
	"log/slog"
	"sync"
	"time"
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
