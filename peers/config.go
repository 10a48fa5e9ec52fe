package peers

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/goneli/neli/kafka"
)

// Host is one log host of the list.
type Host struct {
	// ID names the log: 1 to 64 of a–z, A–Z, 0–9, '.', '_' and '-'. The log keeps it when its host is replaced.
	ID string
	// Address is where all members reach the host, as host:port. A name must stand for one machine only.
	Address string
}

// Config says where the small logs are, and which of them this process hosts. The list, T
// (neli.Config.HeartbeatTimeout) and ρ (MaxClockDrift) must be the same for all hosts and members
// of a group. A process that differs is refused, with a message that names both values. To change
// T or ρ, stop all processes first; the list can change while they run (Next).
type Config struct {
	// Hosts is the list of all log hosts, in any order: 3 or 5, of which a majority must be up for
	// any member to lead. 1 is allowed for development: nobody leads while that host is down.
	Hosts []Host

	// Next is the new list of log hosts while the list changes: Hosts is then the old one. This process
	// leads only with a majority of each. docs/peers.md#changing-the-list has the procedure: restart all
	// processes with Hosts and Next, then all with the new list as Hosts. A host in both lists has the
	// same id and address in both. Together the lists have at most 7 different hosts. It excludes
	// Discover. Default: none.
	Next []Host

	// Discover is a DNS name from which to take the list at the start, instead of Hosts. It needs
	// SRV records _neli._tcp, as a headless Kubernetes service has with a port named "neli" and
	// publishNotReadyAddresses. A host's id is the first label of its target, that is, the pod's
	// name. The start waits until there are as many hosts as Size says. Later changes are ignored.
	// Default: none.
	Discover string

	// Size is N, the number of log hosts, if Discover is set. Default: none.
	Size int

	// Self is the id of the log that this process hosts. Default: none, this process only uses the logs of others.
	Self string

	// Listen is where Self listens, as host:port. Default: its address in the list.
	Listen string

	// TopFile is a file in which Self keeps the largest ballot ever appended to its log. The file
	// is a few bytes, and is written before a record that raises the ballot is appended. If every
	// host has one, and none is ever lost, fencing tokens do not depend on wall clocks, whatever
	// else is lost. A file belongs to one group and one host; when a host is replaced, the new one
	// must get the file. While it cannot be written, records that raise the ballot are refused.
	// Default: none.
	TopFile string

	// TLS are the certificates of this process. Default: none, which is allowed only with Insecure,
	// or if Listen and all addresses in the list are loopback addresses.
	TLS *TLS

	// Insecure allows other addresses than loopback ones without TLS. Anyone who reaches a port
	// can then disturb or fake an election. Default: false.
	Insecure bool

	// Dial connects to the other hosts, like net.Dialer.DialContext, for networks that need a
	// proxy or a special source address. It must make sure that an address stands for one machine.
	// It is called concurrently. Default: a net.Dialer, after a check that the name stands for one
	// machine.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Group, HeartbeatTimeout and MaxClockDrift are for ListenAndServe only. They must be as in
	// the members' neli.Config (Group: LeaderGroupID), from which a Provider takes them. Defaults:
	// none, 5 s, 0.0005.
	Group            string
	HeartbeatTimeout time.Duration
	MaxClockDrift    float64

	// Logger is for ListenAndServe only: a Provider uses neli.Config's. Default: nothing is logged.
	Logger *slog.Logger

	dns resolver // nil: the system's
}

// TLS are the certificates of one process. Each side of a connection shows a certificate signed
// by the other side's CA. A host's certificate must be valid for its host name or IP address in
// the list, any other member's for a name in Members. Files that have changed are read again, for
// new connections.
type TLS struct {
	CertFile string // PEM, the certificate and all intermediate ones
	KeyFile  string // PEM
	CAFile   string // PEM, one or more certificates

	// Members are the names (DNS names or IP addresses of certificates) that may connect to Self
	// besides the hosts of the list. Default: none.
	Members []string
}

// Provider gives a Neli the small logs of a list of hosts in place of Kafka.
//
// neli.New checks the configuration, starts to listen for Config.Self (later, with Discover), and
// returns an error with all faults. With a Self, each Neli needs its own provider, since an address
// has one log. Without a Self, several Nelis may share one.
func Provider(c Config) kafka.Provider { return &provider{c} }

type provider struct{ config Config }

var _ kafka.Checker = (*provider)(nil)

// Check implements kafka.Checker.
func (p *provider) Check() error { return p.config.check() }

// SmallLogs implements kafka.SmallLogs.
func (p *provider) SmallLogs(ctx context.Context, s kafka.LogSettings) (kafka.LogSet, error) {
	set, err := newLogSet(ctx, p.config, s)
	if err != nil {
		return nil, err
	}
	return set, nil
}

var errNoKafka = errors.New("peers: there is no Kafka here, only small logs: use Mode Exclusive and Nomination Open")

func (p *provider) Producer(map[string]string, *slog.Logger) (kafka.Producer, error) {
	return nil, errNoKafka
}

func (p *provider) LogReader(map[string]string, *slog.Logger) (kafka.LogReader, error) {
	return nil, errNoKafka
}

func (p *provider) GroupConsumer(map[string]string, *slog.Logger) (kafka.GroupConsumer, error) {
	return nil, errNoKafka
}

func (p *provider) Admin(kafka.Producer) (kafka.Admin, error) { return nil, errNoKafka }
