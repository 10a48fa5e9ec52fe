package kafkalog

import (
	"errors"
	"sync"
	"time"

	"github.com/goneli/neli/kafka"
)

// barrenAfter is how long a producer may get no acknowledgement before it counts as barren. The
// restart of a broker takes less.
const barrenAfter = 10 * time.Second

// errBarren is the reason to replace a producer that has not failed permanently.
var errBarren = errors.New("nothing was acknowledged or answered for some time")

// barren decides when a client no longer gets anything acknowledged, or any question answered.
// Brokers that are down cause that, and so does a client that has forgotten all brokers, as
// librdkafka does when a broker that shuts down lists none. A new client is harmless in the first
// case and the only remedy in the second. All times are passed in. The methods may be called
// concurrently.
type barren struct {
	mu       sync.Mutex
	since    time.Time // the first failure after the last success; zero: none
	patience time.Duration
}

// acknowledged notes that a record was acknowledged or a question answered.
func (b *barren) acknowledged() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since, b.patience = time.Time{}, barrenAfter
}

// restart begins again with a new producer.
func (b *barren) restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since = time.Time{}
}

// failed notes that a record failed or a question got no answer, and returns true if the producer
// should be replaced. After a replacement that did not help the next one takes twice as long, up
// to stillMost. An error that a broker reports is not silence.
func (b *barren) failed(err error, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, said := range []error{kafka.ErrAuthorization, kafka.ErrAuthentication, kafka.ErrUnknownTopic, kafka.ErrTimestamp, kafka.ErrClientFatal,
		kafka.ErrTopicExists, kafka.ErrSettings} {
		if errors.Is(err, said) {
			b.since = time.Time{}
			return false
		}
	}
	if b.since.IsZero() {
		b.since = now
		return false
	}
	if now.Sub(b.since) < b.patience {
		return false
	}
	b.since, b.patience = time.Time{}, min(2*b.patience, stillMost)
	return true
}
