package franz

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/kafka"
)

// connections is what the hooks of a client report. franz-go retries after failures of
// connections, and does not report them to calls that wait. So the last failure is kept here, and
// added to the error of a call that took too long. Its methods may be called from any goroutine.
type connections struct {
	log *slog.Logger

	throttled atomic.Int64 // total, in nanoseconds
	heard     atomic.Int64 // when a broker last answered, in nanoseconds since began
	began     time.Time

	mu      sync.Mutex
	failure error // of the last connection, nil if a broker has answered since
	told    bool  // trouble has returned the failure
}

// silence is how long all brokers may be silent before a reader or member reports it. Normally a
// fetch is answered each second.
const silence = 3 * time.Second

var greetings = []kmsg.Key{kmsg.ApiVersions, kmsg.SASLHandshake, kmsg.SASLAuthenticate}

func newConnections(log *slog.Logger) *connections {
	return &connections{log: log, began: time.Now()}
}

// Throttled returns for how long, in total, brokers have throttled this client.
func (c *connections) Throttled() time.Duration { return time.Duration(c.throttled.Load()) }

// OnBrokerThrottle is a hook of franz-go.
func (c *connections) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, _ bool) {
	c.throttled.Add(int64(interval))
}

// OnBrokerConnect is a hook of franz-go. err is an error of connecting, of TLS or of SASL. A
// successful connection proves nothing yet.
func (c *connections) OnBrokerConnect(to kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		c.note(unserved(advertised(to, err)))
	}
}

// advertised adds kafka.ErrAdvertised to an error of connecting if brokers advertise the address. Brokers
// whose address the user has given have negative ids.
func advertised(to kgo.BrokerMetadata, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" || to.NodeID < 0 {
		return err
	}
	return fmt.Errorf("%w: broker %d at %s: %w", kafka.ErrAdvertised, to.NodeID, net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))), err)
}

// unserved adds kafka.ErrUnserved to an error of connecting if the broker was reached, but has closed the
// connection or has not answered.
func unserved(err error) error {
	_, closed := errors.AsType[*kgo.ErrFirstReadEOF](err)
	if op, ok := errors.AsType[*net.OpError](err); !closed && (!ok || op.Op != "read") {
		return err
	}
	return fmt.Errorf("%w: %w", kafka.ErrUnserved, err)
}

// OnBrokerRead is a hook of franz-go. An answer while a connection is being set up proves
// nothing, either: a broker that refuses the client hangs up afterwards.
func (c *connections) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if slices.Contains(greetings, kmsg.Key(key)) {
		return // OnBrokerConnect gets its error
	}
	if err == nil {
		c.heard.Store(int64(time.Since(c.began)))
	}
	c.note(err)
}

// note stores the last failure; nil: a broker has answered.
func (c *connections) note(err error) {
	if err != nil && ended(err) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure, c.told = err, false
}

// outcome is classify for an error that may come from waiting for a connection. A refused
// authentication replaces a time-out, and a lost connection is added to it.
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
	case strings.Contains(failure.Error(), err.Error()):
		return classify(doing, failure) // it says more
	}
	return fmt.Errorf("%w (%w)", out, failure)
}

// trouble returns, once, why the last connection failed: refused credentials at once, and
// anything else only if no broker answers, since franz-go tries all connections again.
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
