package kafkatest

import (
	"fmt"
	"net"
)

// A Route is the way to one broker through a proxy: the broker sends its clients
// to Advertised, where the proxy listens, and is reached by the proxy at
// Upstream.
type Route struct {
	BrokerID   int
	Advertised string
	Upstream   string
}

// Routes hands the ports of the proxied listener i, counted from 0, over to a
// proxy, one route per broker. Until then the cluster keeps them, and a client
// hangs there; after it they are free, and the proxy is to listen at once. They
// can be taken once.
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
