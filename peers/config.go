package peers

import (
	"context"
	"log/slog"
	"net"
	"time"
)

// Host is one log host of the list.
type Host struct {
	// ID names the log: 1 to 64 of a–z, A–Z, 0–9, '.', '_' and '-'. The log keeps it
	// when its host is replaced.
	ID string
	// Address is where the host is reached by all members, host:port. A name must stand
	// for one machine only.
	Address string
}

// Config says where the small logs are, and which of them this process hosts. The list,
// and what neli.Config says of T (HeartbeatTimeout) and ρ (MaxClockDrift), are the same
// for all hosts and members of a group: who differs is refused, with a message that names
// both values. They are changed while all are stopped.
type Config struct {
	// Hosts is the list of all log hosts, in any order: 3 or 5, of which a majority must
	// be up for anybody to lead. 1 is allowed for development: nobody leads while it is
	// down.
	Hosts []Host

	// Discover takes the list from DNS at the start, in place of Hosts: a name with SRV
	// records _neli._tcp, as a headless Kubernetes service has them with a port named
	// "neli" and publishNotReadyAddresses. A host's id is the first label of its target:
	// the pod's name. The start waits until there are as many as Size says; what changes
	// later is not heeded. Default: none.
	Discover string

	// Size is N, the number of log hosts, with Discover.
	Size int

	// Self is the id of the log host that this process has inside itself. Default: none,
	// this process only uses the logs of others.
	Self string

	// Listen is where Self listens, host:port. Default: its address in the list.
	Listen string

	// TopFile is where Self keeps the largest ballot that its log was ever given, a few
	// bytes that are written before a record that raises it is appended. If every host has
	// one, and none is ever lost, fencing tokens do not depend on wall clocks, whatever
	// else is forgotten. It is of one group and one host; a replaced host takes it along.
	// If it cannot be written, such records are refused. Default: none.
	TopFile string

	// TLS are the certificates of this process. Default: none, which is allowed only
	// where all addresses are loopback ones, or with Insecure.
	TLS *TLS

	// Insecure allows addresses that are not loopback ones without TLS: whoever reaches a
	// port then may disturb or fake an election. Default: false.
	Insecure bool

	// Dial makes the connections to the other hosts, as net.Dialer.DialContext does: for
	// networks that need a proxy or a source address of their own. Whoever sets it sees to it
	// that an address stands for one machine. Several goroutines call it. Default: a
	// net.Dialer, after that was checked.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Group, HeartbeatTimeout and MaxClockDrift are for ListenAndServe only, and as in the
	// members' neli.Config (Group: LeaderGroupID), where a Provider takes them from.
	// Defaults: none, 5 s, 0.0005.
	Group            string
	HeartbeatTimeout time.Duration
	MaxClockDrift    float64

	// Logger is for ListenAndServe only: a Provider has neli.Config's. Default: discard.
	Logger *slog.Logger

	dns resolver // nil: the system's
}

// TLS are the certificates of one process. Both sides of a connection show one that is
// signed by the other's CA. A host's is valid for the host name or IP address that the
// list has for it; that of a member which is none is valid for a name of Members. The
// files are read again when they have changed, for the connections that begin after that.
type TLS struct {
	CertFile string // PEM, the certificate and what lies between it and the CA
	KeyFile  string // PEM
	CAFile   string // PEM, one or several

	// Members are the names (DNS names or IP addresses of certificates) that may connect
	// to Self besides the hosts of the list. Default: none.
	Members []string
}
