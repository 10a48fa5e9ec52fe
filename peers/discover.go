package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// resolver has the methods of net.Resolver that are needed here.
type resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// dnsService is the name of the port in a headless service.
const dnsService = "neli"

// discovered returns the configuration with the list from DNS, once the list is complete. It
// returns an error if ctx is done first, or the list is wrong.
func (c Config) discovered(ctx context.Context, log *slog.Logger) (Config, error) {
	if c.Discover == "" {
		return c, nil
	}
	every := backoff.NewExponentialBackOff()
	every.InitialInterval, every.MaxInterval = 100*time.Millisecond, 5*time.Second
	said := ""
	hosts, err := backoff.Retry(ctx, func() ([]Host, error) {
		hosts, err := c.lookUp(ctx)
		switch {
		case err == nil && len(hosts) > c.Size:
			err = backoff.Permanent(fmt.Errorf("%d log hosts, and Size is %d: %v", len(hosts), c.Size, hosts))
		case err == nil && len(hosts) < c.Size:
			err = fmt.Errorf("%d of %d log hosts so far: %v", len(hosts), c.Size, hosts)
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			log.Warn("waiting for the list of log hosts", "discover", c.Discover, "error", err)
		}
		return hosts, err
	}, backoff.WithBackOff(every), backoff.WithMaxElapsedTime(0))
	if err != nil {
		return c, fmt.Errorf("peers: Discover: %s: %w", c.Discover, err)
	}
	log.Info("list of log hosts taken from DNS", "discover", c.Discover, "hosts", hosts)
	c.Hosts, c.Discover, c.Size = sorted(hosts), "", 0
	return c, c.check()
}

// lookUp asks DNS once for the list.
func (c Config) lookUp(ctx context.Context) ([]Host, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, records, err := c.resolver().LookupSRV(ctx, dnsService, "tcp", c.Discover)
	if err != nil {
		return nil, err
	}
	var hosts []Host
	for _, r := range records {
		target := strings.TrimSuffix(r.Target, ".")
		id, _, _ := strings.Cut(target, ".")
		hosts = append(hosts, Host{ID: id, Address: net.JoinHostPort(target, strconv.Itoa(int(r.Port)))})
	}
	return slices.Compact(sorted(hosts)), nil // an answer may repeat a record
}

func (c Config) resolver() resolver {
	if c.dns != nil {
		return c.dns
	}
	return net.DefaultResolver
}

var errSeveral = errors.New("a log host is one machine: two that serve the same log would let two members lead")

// dial connects to a host of the list, whose name must stand for one machine.
func (c Config) dial(ctx context.Context, address string) (net.Conn, error) {
	if c.Dial != nil {
		return c.Dial(ctx, "tcp", address)
	}
	name, err := splitAddress(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(name); err != nil && !loopback(name) {
		found, err := c.resolver().LookupNetIP(ctx, "ip", name)
		if err != nil {
			return nil, err
		}
		families := map[bool][]netip.Addr{} // a machine may have one address of each family
		for _, ip := range found {
			ip = ip.Unmap()
			if same := families[ip.Is4()]; !slices.Contains(same, ip) { // a hosts file may repeat an address
				families[ip.Is4()] = append(same, ip)
			}
		}
		if len(families[true]) > 1 || len(families[false]) > 1 {
			return nil, fmt.Errorf("%s stands for %v: %w", name, found, errSeveral)
		}
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}
