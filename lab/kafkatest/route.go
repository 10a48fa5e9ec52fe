package kafkatest

import (
	"fmt"
	"net"
)

// A Route leads to one broker through a proxy. The broker sends its clients to Advertised, where the proxy
// listens. The proxy reaches the broker at Upstream.
type Route struct {
	BrokerID   int
	Advertised string
	Upstream   string
}

// Routes hands the ports of the proxied listener i, counted from 0, over to a proxy, one route per broker. Until
// then the cluster reserves them, and a client that connects hangs. Afterwards they are free, and the proxy must
// listen at once. Each listener's routes can be taken only once.
func (c *Cluster) Routes(i int) ([]Route, error) {
	if i < 0 || i >= c.opts.ProxiedListeners {
		return nil, fmt.Errorf("kafkatest: no proxied listener %d: Options.ProxiedListeners is %d", i, c.opts.ProxiedListeners)
	}
	kept, err := c.take(i)
	if err != nil {
		return nil, err
	}
	var routes []Route
	for _, b := range c.brokers {
		l := b.listener(proxiedListener(i))
		routes = append(routes, Route{BrokerID: b.ID, Advertised: l.advertised, Upstream: l.bind})
	}
	release(kept)
	return routes, nil
}

func (c *Cluster) take(i int) ([]net.Listener, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.routes == nil {
		return nil, fmt.Errorf("kafkatest: proxied listener %d: the cluster was stopped", i)
	}
	kept := c.routes[i]
	if kept == nil {
		return nil, fmt.Errorf("kafkatest: proxied listener %d has its proxy already", i)
	}
	c.routes[i] = nil
	return kept, nil
}

func proxiedListener(i int) string { return fmt.Sprintf("PX%d", i) }
