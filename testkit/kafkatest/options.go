package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"strings"
)

// Options say what cluster to start. The zero value is one broker.
type Options struct {
	// Brokers is the number of brokers, each of them a controller too. Default
	// 1; 3 gives replication factor 3 and min.insync.replicas 2.
	Brokers int

	// Version is that of Apache Kafka, such as 3.9.2: 2.8 to 4.3 are known to work. The first
	// cluster of a version downloads it. Default: [KafkaVersion].
	Version string

	// ZooKeeper has the brokers keep their metadata in a ZooKeeper, a process of its own, and
	// not among themselves. Versions before 4.0 only, and not together with Hosts or Secure.
	ZooKeeper bool

	// ClassPath is where the brokers find classes of the test's, such as that of
	// create.topic.policy.class.name, beside Kafka's own: a directory or an archive.
	ClassPath string

	// BrokerProps are settings for every broker's server.properties, in addition
	// to those that this package chooses, or in their place.
	BrokerProps map[string]string

	// ProxiedListeners is the number of additional PLAINTEXT listeners per
	// broker that advertise the address of a proxy; package proxy uses them, one
	// per member. Default 0.
	ProxiedListeners int

	// Secure adds a listener with TLS and SCRAM-SHA-512 or -256 ([Cluster].SecureBootstrap), another one with TLS
	// and client certificates ([Cluster].MTLSBootstrap), and turns authorization on: who comes in there may do what [Cluster].Allow
	// allowed, and nothing else. The other listeners know no users; who comes in
	// there, without a password, is User:ANONYMOUS, a super user.
	Secure bool

	// Issuer is the address of an issuer of tokens, http://…, which has its keys at /jwks. It must
	// answer when Start is called. It adds a listener without TLS ([Cluster].TokenBootstrap) that
	// takes OAUTHBEARER with JWTs of that issuer for the audience "kafka", and has clients log in again
	// every 20 s. Who comes in there is User:subject; with Secure it may do what
	// [Cluster].Allow allowed.
	Issuer string

	// Hosts, one per broker, put the brokers on hosts of their own, such as network
	// namespaces, where every broker has the same ports. Default: all on this one,
	// on the loopback device. Not together with ProxiedListeners.
	Hosts []Host

	// Dial connects to the brokers from here, where Hosts are out of reach of
	// this process's own network. Default: as the net package does.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Dir is a directory for data, settings and logs. It must be empty or
	// absent, and is left behind. Default: a temporary one, which Stop removes.
	Dir string

	// HeapMiB is how much memory each broker's heap may take. Default: 384, with
	// settings of the JVM that suit a short life beside tests; otherwise its own.
	HeapMiB int

	// Log is told what happens. Default: nobody is.
	Log *slog.Logger
}

// A Host is where a broker runs.
type Host struct {
	IP netip.Addr
	// Start starts a process there, as cmd.Start does here. It may add to
	// cmd.SysProcAttr. If the kernel is to kill the process when this one dies, it
	// has to call cmd.Start on a thread that lives as long: see Pdeathsig.
	Start func(cmd *exec.Cmd) error
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
	if o.ZooKeeper && !strings.HasPrefix(o.Version, "2.") && !strings.HasPrefix(o.Version, "3.") {
		wrong = append(wrong, fmt.Errorf("field Version is %s, must be below 4 with ZooKeeper", o.Version))
	}
	if o.ZooKeeper && (o.Hosts != nil || o.Secure) {
		wrong = append(wrong, errors.New("ZooKeeper is set, must not be with Hosts or Secure"))
	}
	if o.Brokers != 1 && o.Brokers != 3 {
		wrong = append(wrong, fmt.Errorf("Brokers is %d, must be 1 or 3", o.Brokers))
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
