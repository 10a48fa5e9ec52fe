package kafkalog

import (
	"errors"
	"sync"
	"time"

	"github.com/goneli/neli/kafka"
)

// barrenAfter is how long nothing must have been acknowledged until a producer is taken
// to be barren. It is longer than the restart of a broker takes.
const barrenAfter = 10 * time.Second

// errBarren is why a producer is replaced that has not failed for good.
var errBarren = errors.New("nothing was acknowledged or answered for some time")

// barren decides whether a producer gets nothing acknowledged any more, or no answer to what
// is asked over its connections. That looks the same while the brokers are down and when the client has forgotten them all, as librdkafka does
// when a broker that shuts down tells it of no brokers. A new client does no harm in the
// first case, and is the only help in the second. All times are given to it. Its methods
// may be called concurrently.
type barren struct {
	mu       sync.Mutex
	since    time.Time // when something first failed after the last success; zero: nothing has
	patience time.Duration
}

// acknowledged takes note that a record is in the log, or that a question was answered.
func (b *barren) acknowledged() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since, b.patience = time.Time{}, barrenAfter
}

// restart begins anew with a producer that was replaced.
func (b *barren) restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since = time.Time{}
}

// failed takes note that a record was reported as failed, or a question not answered, and
// returns true if the producer should be replaced. A producer that was replaced in vain is given twice the time, and at
// most stillMost. An error that comes from a broker is no silence.
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
