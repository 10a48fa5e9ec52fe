package proxy

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"

	"github.com/goneli/neli/lab/kafkatest"
)

// A link leads to one broker. It is a toxiproxy with a gate for each direction. Only one goroutine at a time may
// change it.
type link struct {
	kafkatest.Route
	proxy    *toxiproxy.Proxy
	up, down *gate

	lossy   bool // open connections may have lost bytes
	refused bool // the proxy is stopped
}

// newLink starts the proxy.
func newLink(server *toxiproxy.ApiServer, route kafkatest.Route) (*link, error) {
	name := fmt.Sprintf("broker-%d", route.BrokerID)
	l := &link{Route: route, proxy: toxiproxy.NewProxy(server, name, route.Advertised, route.Upstream)}
	for stream, g := range map[string]**gate{"upstream": &l.up, "downstream": &l.down} {
		// Toxiproxy accepts toxics only as JSON.
		added, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(
			fmt.Sprintf(`{"type": %q, "stream": %q, "attributes": {}}`, gateType, stream)))
		if err != nil {
			return nil, err
		}
		*g = added.Toxic.(*gate)
	}
	return l, l.proxy.Start()
}

func (l *link) cutOff(how Cut) error {
	if how == Refuse {
		return l.change(drop, drop, true)
	}
	return l.change(how.modes(drop))
}

func (l *link) hold(how Cut) error { return l.change(how.modes(hold)) }

func (l *link) restore() error {
	l.delay(0)
	return l.change(pass, pass, false)
}

func (l *link) delay(d time.Duration) {
	l.up.setDelay(d / 2)
	l.down.setDelay(d / 2)
}

// change changes the state directly, without an intermediate one. It closes connections that may have lost bytes
// before anything can pass again.
func (l *link) change(up, down mode, refuse bool) error {
	stopped := l.refused
	if !stopped && (l.lossy || refuse) {
		l.proxy.Stop()
		stopped = true
	}
	l.up.set(up)
	l.down.set(down)
	l.lossy = up == drop || down == drop
	l.refused = stopped
	if !stopped || refuse {
		return nil
	}
	if err := l.listenAgain(); err != nil {
		return fmt.Errorf("listening again: %w", err)
	}
	l.refused = false
	return nil
}

// copied is how long a copy of the former listener may stay open. A child process has copies of all sockets from the
// moment it is forked until it executes its program, which takes long on a busy machine. Meanwhile the address is in use.
const copied = 10 * time.Second

func (l *link) listenAgain() error {
	for began := time.Now(); ; {
		err := l.proxy.Start()
		if !errors.Is(err, syscall.EADDRINUSE) || time.Since(began) > copied {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
}
