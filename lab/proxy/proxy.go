package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/goneli/neli/lab/kafkatest"
)

// A Cut is a way to be cut off.
type Cut int

// The ways to be cut off. Upstream is what the member sends to the broker,
// Downstream what the broker sends to the member.
const (
	Upstream   Cut = iota + 1 // requests do not arrive
	Downstream                // responses do not arrive: the broker acts, and the member does not know
	Both                      // neither arrives
	Refuse                    // connections are closed, and new ones refused
)

func (c Cut) String() string {
	switch c {
	case Upstream:
		return "upstream"
	case Downstream:
		return "downstream"
	case Both:
		return "both"
	case Refuse:
		return "refuse"
	}
	return fmt.Sprintf("Cut(%d)", int(c))
}

// modes returns the arguments of link.change: mode m for the directions that c silences.
func (c Cut) modes(m mode) (up, down mode, refuse bool) {
	if c != Downstream {
		up = m
	}
	if c != Upstream {
		down = m
	}
	return up, down, false
}

// A Proxy connects one member to all brokers. Its methods are safe for concurrent use, and return when the change is
// in effect. Methods that take broker ids act on all brokers if none is given.
type Proxy struct {
	links []*link // one per broker

	mu     sync.Mutex
	closed bool
}

// New starts the proxy for the cluster's proxied listener i, counted from 0. A listener can have only one proxy in its
// life.
func New(cluster *kafkatest.Cluster, i int) (*Proxy, error) {
	routes, err := cluster.Routes(i)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	// The "server" only carries metrics and a log, both unused.
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &Proxy{}
	for _, route := range routes {
		l, err := newLink(server, route)
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("proxy: broker %d: %w", route.BrokerID, err)
		}
		p.links = append(p.links, l)
	}
	return p, nil
}

// Bootstrap returns the bootstrap addresses for the member, separated by commas, one per broker.
func (p *Proxy) Bootstrap() string {
	var addrs []string
	for _, l := range p.links {
		addrs = append(addrs, l.Advertised)
	}
	return strings.Join(addrs, ",")
}

// CutOff drops what is sent, or refuses connections, until Restore. It replaces an earlier CutOff or Hold. Data that
// Hold kept is dropped in the directions that are cut, and delivered in the other.
func (p *Proxy) CutOff(how Cut, brokerIDs ...int) error {
	if how < Upstream || how > Refuse {
		return fmt.Errorf("proxy: cannot cut off %v", how)
	}
	return p.each("cutting off", brokerIDs, func(l *link) error { return l.cutOff(how) })
}

// Hold keeps what is sent until Restore, and then delivers it. It replaces an earlier Hold, or an earlier CutOff,
// whose connections it closes. After about a thousand reads' worth of data in one connection, the sender's socket
// buffer fills up.
func (p *Proxy) Hold(how Cut, brokerIDs ...int) error {
	if how < Upstream || how > Both {
		return fmt.Errorf("proxy: cannot hold %v", how)
	}
	return p.each("holding", brokerIDs, func(l *link) error { return l.hold(how) })
}

// Latency delays what is sent by d/2 in each direction, so that a round trip takes d longer; 0 ends it. It replaces an
// earlier Latency, and leaves a CutOff or Hold in effect.
func (p *Proxy) Latency(d time.Duration, brokerIDs ...int) error {
	return p.each("delaying", brokerIDs, func(l *link) error {
		l.delay(d)
		return nil
	})
}

// Restore undoes CutOff, Hold and Latency. It closes connections that CutOff silenced. Those under Hold or Latency
// stay open, and the kept data is delivered.
func (p *Proxy) Restore(brokerIDs ...int) error {
	return p.each("restoring", brokerIDs, (*link).restore)
}

// Close closes all connections and refuses new ones, for good. Further calls do nothing.
func (p *Proxy) Close() {
	// Closing fails only if it was done before.
	_ = p.each("closing", nil, func(l *link) error { return l.cutOff(Refuse) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// each changes the links of these brokers, or of all when none is given.
func (p *Proxy) each(doing string, brokerIDs []int, change func(*link) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("proxy: %s: the proxy is closed", doing)
	}
	for _, id := range brokerIDs {
		if !slices.ContainsFunc(p.links, func(l *link) bool { return l.BrokerID == id }) {
			return fmt.Errorf("proxy: %s: there is no broker %d", doing, id)
		}
	}
	var failed []error
	for _, l := range p.links {
		if len(brokerIDs) == 0 || slices.Contains(brokerIDs, l.BrokerID) {
			if err := change(l); err != nil {
				failed = append(failed, fmt.Errorf("proxy: %s broker %d: %w", doing, l.BrokerID, err))
			}
		}
	}
	return errors.Join(failed...)
}
