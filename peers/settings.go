package peers

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	defaultTimeout = 5 * time.Second
	minTimeout     = 100 * time.Millisecond
	maxTimeout     = time.Minute
	defaultDrift   = 0.0005
	maxDrift       = 0.2
)

var hostID = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,64}$`)

// faults collects everything that is wrong with a configuration.
type faults struct{ list []error }

// check adds an error unless ok, with the field, its value and the rule that it breaks.
func (f *faults) check(ok bool, field string, value any, rule string) {
	if !ok {
		f.list = append(f.list, fmt.Errorf("%s: %q %s", field, fmt.Sprint(value), rule))
	}
}

func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return fmt.Errorf("peers: invalid configuration:\n%w", errors.Join(f.list...))
}

// check finds everything that is wrong with the configuration and can be found without the network.
func (c Config) check() error {
	var f faults
	c.collect(&f)
	return f.err()
}

func (c Config) collect(f *faults) {
	if c.Discover != "" {
		f.check(len(c.Hosts) == 0, "Discover", c.Discover, "takes the place of Hosts: set only one of them")
		f.check(len(c.Next) == 0, "Discover", c.Discover, "has no Next: while the list changes, write it out in Hosts")
		f.check(allowedSize(c.Size), "Size", c.Size, "must be 3 or 5 (1 for development)")
		f.check(c.TLS != nil || c.Insecure, "TLS", "", "is needed if the list comes from DNS, unless Insecure is set")
	} else {
		f.check(c.Size == 0, "Size", c.Size, "is for Discover: without that, the length of Hosts counts")
		c.checkHosts(f)
	}
	f.check(c.Listen == "" || c.Self != "", "Listen", c.Listen, "needs Self: a process without a log listens nowhere")
	if c.Listen != "" {
		name, err := splitAddress(c.Listen)
		f.check(err == nil, "Listen", c.Listen, fmt.Sprint("must be host:port: ", err))
		f.check(err != nil || c.TLS != nil || c.Insecure || loopback(name), "Listen", c.Listen, "is not a loopback address: set TLS, or Insecure")
	}
	f.check(c.TopFile == "" || c.Self != "", "TopFile", c.TopFile, "needs Self: it belongs to the log that this process hosts")
	if c.TLS != nil {
		c.checkTLS(f)
	}
}

func allowedSize(n int) bool { return n == 1 || n == 3 || n == 5 }

func (c Config) checkHosts(f *faults) {
	c.checkList(f, "Hosts", c.Hosts)
	if len(c.Next) > 0 {
		c.checkList(f, "Next", c.Next)
		c.checkNext(f)
	}
	f.check(c.Self == "" || slices.ContainsFunc(c.all(), func(h Host) bool { return h.ID == c.Self }), "Self", c.Self, "is not the id of a host of the list")
}

// maxBoth is how many different hosts two lists may have.
const maxBoth = 7

// checkNext compares the two lists.
func (c Config) checkNext(f *faults) {
	for _, n := range c.Next {
		for _, h := range c.Hosts {
			f.check((n.ID == h.ID) == (n.Address == h.Address), "Next: "+n.ID, n.Address,
				fmt.Sprintf("has only its id or only its address in common with %s (%s) of Hosts: a host in both lists has both", h.ID, h.Address))
		}
	}
	f.check(!slices.Equal(sorted(c.Hosts), sorted(c.Next)), "Next", len(c.Next), "log hosts, those of Hosts: leave Next empty unless the list changes")
	f.check(len(c.all()) <= maxBoth, "Next", len(c.all()), fmt.Sprintf("different hosts in both lists: must be %d at most: change fewer hosts at a time", maxBoth))
}

// all returns the hosts of both lists, sorted by id.
func (c Config) all() []Host { return both(c.Hosts, c.Next) }

func (c Config) checkList(f *faults, field string, hosts []Host) {
	f.check(allowedSize(len(hosts)), field, len(hosts),
		"log hosts: must be 3 or 5 (1 for development), since an even number tolerates no more failures than one less")
	ids, addresses := map[string]bool{}, map[string]string{}
	for _, h := range hosts {
		f.check(hostID.MatchString(h.ID), field+": id", h.ID, "must be 1 to 64 of a–z, A–Z, 0–9, '.', '_' and '-'")
		f.check(!ids[h.ID], field+": id", h.ID, "occurs twice")
		ids[h.ID] = true
		name, err := splitAddress(h.Address)
		f.check(err == nil, field+": address of "+h.ID, h.Address, fmt.Sprint("must be host:port: ", err))
		ip, _ := netip.ParseAddr(name)
		f.check(err != nil || name != "" && !ip.IsUnspecified(), field+": address of "+h.ID, h.Address, "must name a machine")
		other, twice := addresses[h.Address]
		f.check(!twice, field+": address of "+h.ID, h.Address, "is also that of "+other+": one address has one log")
		addresses[h.Address] = h.ID
		f.check(c.TLS != nil || c.Insecure || loopback(name), field+": address of "+h.ID, h.Address,
			"is not a loopback address: set TLS, or Insecure")
	}
}

func (c Config) checkTLS(f *faults) {
	t, err := newKeys(*c.TLS)
	f.check(err == nil, "TLS", c.TLS.CertFile, fmt.Sprint("cannot be used: ", err))
	for _, m := range c.TLS.Members {
		f.check(m != "", "TLS: Members", m, "must be a name")
	}
	for _, h := range c.all() {
		if err == nil && c.Self != "" && h.ID == c.Self {
			name, _ := splitAddress(h.Address)
			err := t.leaf().VerifyHostname(name)
			f.check(err == nil, "TLS: CertFile", c.TLS.CertFile, fmt.Sprintf("is not for %s, where the list has %s: %v", name, h.ID, err))
		}
	}
}

// splitAddress returns the host of host:port.
func splitAddress(address string) (string, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q is not between 1 and 65535", port)
	}
	return name, nil
}

func loopback(name string) bool {
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback() || strings.EqualFold(name, "localhost")
}

// sorted returns the list in the order of ids. That is the order of the logs, which is the same
// for all processes, whatever order each was given.
func sorted(hosts []Host) []Host {
	return slices.SortedFunc(slices.Values(hosts), func(a, b Host) int { return cmp.Compare(a.ID, b.ID) })
}

// settings is a Config that was checked, with the list and the values from neli.Config.
type settings struct {
	config Config
	agreed agreement
	self   Host // zero: this process hosts no log
	keys   *keys
	name   string // this process's, for people
}

// settle makes the settings of a Config that was checked and has its list.
func (c Config) settle(agreed agreement, name string, log *slog.Logger) (*settings, error) {
	s := &settings{config: c, name: name, agreed: agreed}
	s.agreed.hosts, s.agreed.next = sorted(c.Hosts), sorted(c.Next)
	for _, h := range c.all() {
		if h.ID == c.Self {
			s.self = h
		}
	}
	if c.TLS != nil {
		var err error
		if s.keys, err = newKeys(*c.TLS); err != nil {
			return nil, fmt.Errorf("peers: TLS: %w", err)
		}
		s.keys.logger = log
	}
	if len(c.Hosts) == 1 {
		log.Warn("only one log host: for development; nobody leads while it is down", "host", c.Hosts[0].ID, "address", c.Hosts[0].Address)
	}
	return s, nil
}
