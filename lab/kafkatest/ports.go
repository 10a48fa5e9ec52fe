package kafkatest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports lie below the ephemeral ranges (Linux: from 32768, macOS: from 49152) instead of coming from the kernel
// by ":0". While its broker is down, an ephemeral port may become the local end of any outgoing connection, and
// the broker could not restart. Worse, a client that keeps dialling a dead broker on such a port eventually
// connects to itself.
const (
	firstPort = 15000
	lastPort  = 31999
)

// reserve listens on n different free ports of the loopback interface.
func reserve(n int) ([]net.Listener, error) {
	var reserved []net.Listener
	for tries := 0; len(reserved) < n; tries++ {
		if tries == 200+n {
			release(reserved)
			return nil, errors.New("kafkatest: no free port found between " +
				strconv.Itoa(firstPort) + " and " + strconv.Itoa(lastPort))
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", loopback(port))
		if err == nil {
			reserved = append(reserved, l)
		}
	}
	return reserved, nil
}

func release(reserved []net.Listener) {
	for _, l := range reserved {
		_ = l.Close()
	}
}

// FreeAddrs returns n addresses of the loopback interface that were free a moment ago. Outgoing connections do
// not use their ports.
func FreeAddrs(n int) ([]string, error) {
	reserved, err := reserve(n)
	if err != nil {
		return nil, err
	}
	defer release(reserved)
	addrs := make([]string, n)
	for i, l := range reserved {
		addrs[i] = l.Addr().String()
	}
	return addrs, nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

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
