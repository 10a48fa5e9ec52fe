// Package absent tells a topic that does not exist from one that a broker does not know yet.
// Brokers answer UNKNOWN_TOPIC_OR_PARTITION for both. A broker that was just started, that has just
// got a partition, or that has not heard of a new topic, knows the topic a moment later.
package absent

import (
	"iter"
	"sync"
	"time"
)

// Patience is how long a topic must have been unknown to count as missing.
const Patience = 10 * time.Second

// forgotten is how long a refusal counts if no other one follows.
const forgotten = time.Minute

// Topics are the topics that were unknown when they were last written to. The zero value is ready
// for use. Its methods may be called concurrently.
type Topics struct {
	mu      sync.Mutex
	unknown map[string]span
}

type span struct{ first, last time.Time }

// Missing notes that a write to a topic, from began until now, was refused because the topic is
// unknown. It reports whether the topic has been unknown for Patience.
func (t *Topics) Missing(topic string, began, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, noted := t.unknown[topic]
	if !noted || began.Sub(s.last) > forgotten || began.Before(s.first) {
		s.first = began
	}
	s.last = now
	if t.unknown == nil {
		t.unknown = map[string]span{}
	}
	t.unknown[topic] = s
	return now.Sub(s.first) >= Patience
}

// Known notes that topics were written to.
func (t *Topics) Known(topics iter.Seq[string]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.unknown) == 0 {
		return
	}
	for topic := range topics {
		delete(t.unknown, topic)
	}
}
