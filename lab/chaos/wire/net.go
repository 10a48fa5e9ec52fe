package wire

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/goneli/neli/lab/kafkatest"
)

// A Net is a set of hosts and the links between them. Its methods may be called concurrently.
type Net struct {
	hosts []*Host
	links map[[2]string]*link
	stop  chan struct{}
	work  sync.WaitGroup
	once  sync.Once
}

// New makes a network of hosts with these names; the seed decides which packets are lost. The caller closes it.
func New(seed uint64, names ...string) (*Net, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("wire: network namespaces need root, and this is user %d", os.Geteuid())
	}
	n := &Net{links: map[[2]string]*link{}, stop: make(chan struct{})}
	for i, name := range names {
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}), 24)
		h, err := newHost(name, prefix)
		if err != nil {
			n.Close()
			return nil, err
		}
		n.hosts = append(n.hosts, h)
	}
	for i, from := range n.hosts {
		for j, to := range n.hosts {
			if i == j {
				continue // a host reaches itself by its loopback device
			}
			l := newLink(to.tun, rand.New(rand.NewPCG(seed, uint64(i)<<32|uint64(j))))
			from.links[to.IP] = l
			n.links[[2]string{from.Name, to.Name}] = l
			n.work.Go(func() { l.run(n.stop) })
		}
	}
	for _, h := range n.hosts {
		n.work.Go(func() { h.forward() })
	}
	return n, nil
}

// forward reads what the host sends, until its device is closed.
func (h *Host) forward() {
	buf := make([]byte, 1<<16)
	for {
		n, err := h.tun.Read(buf)
		if err != nil {
			return
		}
		// Only IPv4 is forwarded: the kernel also sends router solicitations of IPv6.
		const header, destination = 20, 16
		if n < header || buf[0]>>4 != 4 {
			continue
		}
		to := netip.AddrFrom4([4]byte(buf[destination : destination+4]))
		if l := h.links[to]; l != nil {
			l.enter(buf[:n])
		}
	}
}

// Host returns the host of that name, which must be one of New's names.
func (n *Net) Host(name string) *Host {
	i := slices.IndexFunc(n.hosts, func(h *Host) bool { return h.Name == name })
	if i < 0 {
		panic("wire: no host " + name)
	}
	return n.hosts[i]
}

// Brokers returns the hosts of those names for package kafkatest to start brokers on.
func (n *Net) Brokers(names ...string) []kafkatest.Host {
	var hosts []kafkatest.Host
	for _, name := range names {
		h := n.Host(name)
		hosts = append(hosts, kafkatest.Host{IP: h.IP, Start: h.Start})
	}
	return hosts
}

// Set gives the link from one host to another a policy, one way.
func (n *Net) Set(from, to string, p Policy) { n.link(from, to).set(p) }

// Count returns what became of the packets from one host to another.
func (n *Net) Count(from, to string) Count { return n.link(from, to).counted() }

func (n *Net) link(from, to string) *link {
	l := n.links[[2]string{from, to}]
	if l == nil {
		panic("wire: no link from " + from + " to " + to)
	}
	return l
}

// Total adds up what became of all packets.
func (n *Net) Total() Count {
	var sum Count
	for _, l := range n.links {
		c := l.counted()
		sum.Carried += c.Carried
		sum.Cut += c.Cut
		sum.Lost += c.Lost
		sum.Overflowed += c.Overflowed
	}
	return sum
}

// Close ends the hosts' threads, and thereby their processes and the network.
func (n *Net) Close() {
	n.once.Do(func() {
		close(n.stop)
		for _, h := range n.hosts {
			close(h.stop)
			<-h.ended
			h.release()
		}
		n.work.Wait()
	})
}
