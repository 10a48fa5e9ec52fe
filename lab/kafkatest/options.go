package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"regexp"
	"slices"
)

// Options describe the cluster to start. The zero value means one broker.
type Options struct {
	// Brokers is the number of brokers, each of them a controller too. Default
	// 1; 3 gives replication factor 3 and min.insync.replicas 2.
	Brokers int

	// Version is the version of Apache Kafka, for example 3.9.2: 2.8 to 4.4 are known to work. The first
	// cluster of a version downloads it. Default: [KafkaVersion].
	Version string

	// ZooKeeper makes the brokers keep their metadata in ZooKeeper, a process of its own, instead of among
	// themselves. Only for versions before 4.0, and not together with Hosts or Secure.
	ZooKeeper bool

	// ClassPath is a directory or an archive with the test's own classes for the brokers, such as the class of
	// create.topic.policy.class.name.
	ClassPath string

	// BrokerProps are settings for every broker's server.properties. They add to or replace those that this
	// package chooses. With replica.selector.class brokers are in racks rack1, rack2, ….
	BrokerProps map[string]string

	// Port is the port of the first broker's address; the others have the ports after it. Start fails if one of
	// them is taken. Default: free ports. Not together with Hosts.
	Port int

	// ProxiedListeners is the number of additional PLAINTEXT listeners per broker that advertise the address
	// of a proxy. Package proxy uses them, one per member. Default 0.
	ProxiedListeners int

	// Secure adds a listener with TLS and SCRAM-SHA-512 or -256 ([Cluster].SecureBootstrap) and another one
	// with TLS and client certificates ([Cluster].MTLSBootstrap), and turns authorization on: clients of these
	// listeners may do only what [Cluster].Allow allowed. The other listeners have no login. Their clients are
	// User:ANONYMOUS, a super user. Only for versions from 3.5 on: earlier brokers keep no passwords among themselves.
	Secure bool

	// Issuer is the URL of an issuer of tokens, http://…, with its keys at /jwks. The issuer must answer when
	// Start is called. Issuer adds a listener without TLS ([Cluster].TokenBootstrap) that accepts OAUTHBEARER
	// with that issuer's JWTs for the audience "kafka", and makes clients log in again every 20 s. A client's
	// principal there is User:subject; with Secure it may do only what [Cluster].Allow allowed.
	Issuer string

	// Kerberos adds a listener without TLS ([Cluster].KerberosBootstrap) that accepts GSSAPI. A client's principal
	// there is User:name, without the realm; with Secure it may do only what [Cluster].Allow allowed.
	Kerberos *Kerberos

	// Hosts, one per broker, put the brokers on hosts of their own, such as network namespaces, where every
	// broker uses the same ports. Default: all brokers on this host, on the loopback device. Not together
	// with ProxiedListeners.
	Hosts []Host

	// Dial connects to the brokers if this process's own network does not reach Hosts. Default: like the net package.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Dir is a directory for data, settings and logs. It must be empty or
	// absent, and is left behind. Default: a temporary one, which Stop removes.
	Dir string

	// Log receives progress messages. Default: none.
	Log *slog.Logger
}

// A Host is where a broker runs.
type Host struct {
	IP netip.Addr
	// Start starts a process there, as cmd.Start does here. It may add to cmd.SysProcAttr. The kernel kills
	// the process when the thread that calls cmd.Start ends (see Pdeathsig), so that thread must last.
	Start func(cmd *exec.Cmd) error
	// Data is an empty directory for the broker's data, such as another file system's. Default: one below Options.Dir.
	Data string
}

// A version becomes a part of paths and of Maven's project.
var versionRE = regexp.MustCompile(`^\d+\.\d+\.\d+(-\w+)?$`)

// before reports whether a version is older than major.minor.
func before(version string, major, minor int) bool {
	var is [2]int
	_, _ = fmt.Sscanf(version, "%d.%d", &is[0], &is[1]) // versionRE matches it
	return slices.Compare(is[:], []int{major, minor}) < 0
}

func (o Options) withDefaults() (Options, error) {
	if o.Brokers == 0 {
		o.Brokers = 1
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = KafkaVersion
	}
	var wrong []error
	switch {
	case !versionRE.MatchString(o.Version):
		wrong = append(wrong, fmt.Errorf("field Version is %q, must be like %s", o.Version, KafkaVersion))
	case o.ZooKeeper && !before(o.Version, 4, 0):
		wrong = append(wrong, fmt.Errorf("field Version is %s, must be below 4 with ZooKeeper", o.Version))
	case o.Secure && before(o.Version, 3, 5):
		wrong = append(wrong, fmt.Errorf("field Version is %s, must be 3.5 or later with Secure", o.Version))
	}
	if o.ZooKeeper && (o.Hosts != nil || o.Secure) {
		wrong = append(wrong, errors.New("ZooKeeper is set, must not be with Hosts or Secure"))
	}
	if o.Brokers != 1 && o.Brokers != 3 {
		wrong = append(wrong, fmt.Errorf("Brokers is %d, must be 1 or 3", o.Brokers))
	}
	if o.Port < 0 || o.Port+o.Brokers-1 > 65535 || o.Port != 0 && o.Hosts != nil {
		wrong = append(wrong, fmt.Errorf("field Port is %d, must be from 0 to %d, and 0 with Hosts", o.Port, 65536-o.Brokers))
	}
	if o.ProxiedListeners < 0 {
		wrong = append(wrong, fmt.Errorf("ProxiedListeners is %d, must not be negative", o.ProxiedListeners))
	}
	if o.Hosts != nil && len(o.Hosts) != o.Brokers {
		wrong = append(wrong, fmt.Errorf("%d Hosts, must be as many as Brokers, %d", len(o.Hosts), o.Brokers))
	}
	if o.Hosts != nil && o.ProxiedListeners > 0 {
		wrong = append(wrong, fmt.Errorf("ProxiedListeners is %d, must be 0 with Hosts: they are on the loopback device", o.ProxiedListeners))
	}
	if wrong != nil {
		return o, fmt.Errorf("kafkatest: %w", errors.Join(wrong...))
	}
	return o, nil
}
