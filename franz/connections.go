package franz

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/kafka"
)

// connections is what the hooks of a client tell. franz-go retries what has to do with
// connections, and says nothing of it to who waits: so the last failure is kept here,
// to be added to what took too long. Its methods may be called from anywhere.
type connections struct {
	log *slog.Logger

	throttled atomic.Int64 // in all, in nanoseconds
	heard     atomic.Int64 // when a broker answered last, in nanoseconds since began
	began     time.Time

	mu      sync.Mutex
	failure error // of the last connection, nil if a broker has answered since
	told    bool  // the failure has been returned by itself
}

// silence is how long no broker may answer before a reader or member says so. A fetch
// is answered each second.
const silence = 3 * time.Second

var greetings = []kmsg.Key{kmsg.ApiVersions, kmsg.SASLHandshake, kmsg.SASLAuthenticate}

func newConnections(log *slog.Logger) *connections {
	return &connections{log: log, began: time.Now()}
}

// Throttled returns for how long, in all, brokers have told this client to wait.
func (c *connections) Throttled() time.Duration { return time.Duration(c.throttled.Load()) }

// OnBrokerThrottle is a hook of franz-go.
func (c *connections) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, _ bool) {
	c.throttled.Add(int64(interval))
}

// OnBrokerConnect is a hook of franz-go. The error is of connecting, of TLS or of SASL.
// A connection that was made proves nothing yet.
func (c *connections) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		c.note(err)
	}
}

// OnBrokerRead is a hook of franz-go. What a broker answers while a connection is being
// made proves nothing either; to whom it does not speak it hangs up afterwards.
func (c *connections) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if slices.Contains(greetings, kmsg.Key(key)) {
		return // OnBrokerConnect has its error
	}
	if err == nil {
		c.heard.Store(int64(time.Since(c.began)))
	}
	c.note(err)
}

// note keeps a failure, or that there is none.
func (c *connections) note(err error) {
	if err != nil && ended(err) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure, c.told = err, false
}

// outcome is classify for what may have waited for a connection: a refused
// authentication takes the place of a time-out, a lost connection is added to it.
func (c *connections) outcome(doing string, err error) error {
	out := classify(doing, err)
	if err == nil || !passing(out) {
		return out
	}
	c.mu.Lock()
	failure := c.failure
	c.mu.Unlock()
	switch {
	case failure == nil, strings.Contains(out.Error(), failure.Error()):
		return out
	case kindOf(failure) == kafka.ErrAuthentication:
		return fmt.Errorf("%w (%w)", classify(doing, failure), err)
	}
	return fmt.Errorf("%w (%w)", out, failure)
}

// trouble returns, once, why the last connection failed: refused credentials at once,
// anything else when no broker answers, since all connections are tried again.
func (c *connections) trouble(doing string) error {
	silent := time.Since(c.began)-time.Duration(c.heard.Load()) > silence
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil || c.told || !silent && kindOf(c.failure) != kafka.ErrAuthentication {
		return nil
	}
	c.told = true
	return classify(doing, c.failure)
}
