package kafkatest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli/lab/nursery"
)

// startLimit bounds a start whose context has no deadline. Three brokers take 7 s on two idle cores.
const startLimit = 2 * time.Minute

// A Cluster is a running Kafka. Its methods may be called concurrently.
type Cluster struct {
	opts      Options
	jars      string
	javaPath  string
	archiveTo string // the archive of classes that the brokers are to make
	dir       string
	brokers   []*Broker

	authority *authority // nil unless Secure
	zookeeper string     // its address; empty: there is none

	nursery  *nursery.Nursery // nil until launched
	stopOnce sync.Once

	mu     sync.Mutex
	routes [][]net.Listener // ports reserved for proxies: by listener, then broker
}

// testHookLaidOut, if set, is called after ports are chosen and before they are used.
var testHookLaidOut func(*Cluster)

// Start starts a cluster and returns when it is ready. The first Start on a
// machine downloads Kafka's jars. A context without a deadline is given one of
// two minutes, for which the download does not count.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := find(opts.Version); err != nil {
		return nil, err
	}
	javaPath, err := findJava()
	if err != nil {
		return nil, err
	}
	jars, err := jars(ctx, opts.Version, opts.Log)
	if err != nil {
		return nil, fmt.Errorf("kafkatest: %w", err)
	}
	if opts.Version == KafkaVersion {
		if err := archiveClasses(ctx, jars, javaPath, opts.Log); err != nil {
			opts.Log.Warn("brokers start without an archive of classes", "error", err)
		}
	}
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel := context.WithTimeout(ctx, startLimit)
		defer cancel()
		ctx = limited
	}
	// A port that is free when it is chosen may be taken a moment later.
	for try := 1; ; try++ {
		c := &Cluster{opts: opts, jars: jars, javaPath: javaPath}
		err := c.launch(ctx)
		if err == nil {
			return c, nil
		}
		taken := c.portTaken()
		c.Stop()
		if !taken || try == 3 || ctx.Err() != nil {
			return nil, err
		}
		opts.Log.Warn("a port was taken meanwhile, trying others", "error", err)
		if opts.Dir != "" {
			if err := empty(opts.Dir); err != nil {
				return nil, err
			}
		}
	}
}

// launch does all of Start for one choice of ports. After an error the caller must stop c.
func (c *Cluster) launch(ctx context.Context) error {
	began := time.Now()
	scratch, err := c.makeDir()
	if err != nil {
		return err
	}
	if c.nursery, err = nursery.New(scratch); err != nil {
		return err
	}
	if c.opts.Secure {
		if c.authority, err = newAuthority(c.dir); err != nil {
			return err
		}
	}
	if err := c.layOut(); err != nil {
		return err
	}

	if testHookLaidOut != nil {
		testHookLaidOut(c)
	}

	id := newClusterID()
	if c.opts.ZooKeeper {
		if err := c.startZooKeeper(ctx); err != nil {
			return err
		}
	}
	formatting, formatCtx := errgroup.WithContext(ctx)
	for _, b := range c.brokers {
		formatting.Go(func() error { return b.format(formatCtx, id) })
	}
	if err := formatting.Wait(); err != nil {
		return err
	}
	formatted := time.Since(began)

	var ids []int
	for _, b := range c.brokers {
		ids = append(ids, b.ID)
		if err := b.start(); err != nil {
			return err
		}
	}
	waiting, waitCtx := errgroup.WithContext(ctx)
	for _, b := range c.brokers {
		waiting.Go(func() error { return b.waitReady(waitCtx, ids...) })
	}
	if err := waiting.Wait(); err != nil {
		return err
	}
	c.opts.Log.Info("Kafka is ready", "version", c.opts.Version, "brokers", len(ids), "bootstrap", c.Bootstrap(),
		"formatted", formatted.Round(time.Millisecond), "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// makeDir makes the cluster's directory, and returns it if Stop must remove it.
func (c *Cluster) makeDir() (scratch string, err error) {
	if c.opts.Dir == "" {
		c.dir, err = os.MkdirTemp("", "neli-kafka-")
		return c.dir, err
	}
	if c.dir, err = filepath.Abs(c.opts.Dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return "", fmt.Errorf("kafkatest: %w", err)
	}
	found, err := os.ReadDir(c.dir)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("kafkatest: Dir %s is not empty", c.dir)
	}
	return "", err
}

// layOut makes the brokers and gives every listener its address.
func (c *Cluster) layOut() error {
	c.routes = make([][]net.Listener, c.opts.ProxiedListeners)
	for id := 1; id <= c.opts.Brokers; id++ {
		b := &Broker{ID: id, cluster: c, startOn: (*exec.Cmd).Start, dir: filepath.Join(c.dir, fmt.Sprintf("broker-%d", id))}
		b.listeners = []listener{{name: plainListener, protocol: "PLAINTEXT"}}
		if !c.opts.ZooKeeper {
			b.listeners = append(b.listeners, listener{name: controllerListener, protocol: "PLAINTEXT"})
		}
		if c.opts.Secure {
			b.listeners = append(b.listeners, listener{name: secureListener, protocol: "SASL_SSL"}, listener{name: mtlsListener, protocol: "SSL"})
		}
		if c.opts.Issuer != "" {
			b.listeners = append(b.listeners, listener{name: tokenListener, protocol: "SASL_PLAINTEXT"})
		}
		if c.opts.Kerberos != nil {
			b.listeners = append(b.listeners, listener{name: kerberosListener, protocol: "SASL_PLAINTEXT"})
		}
		for i := range c.opts.ProxiedListeners {
			b.listeners = append(b.listeners, listener{name: proxiedListener(i), protocol: "PLAINTEXT"})
		}
		c.brokers = append(c.brokers, b)
	}

	if c.opts.Hosts != nil {
		c.layOutOnHosts()
		return nil
	}
	// All ports are reserved together, so that no two are the same. Those for proxies stay reserved.
	var taken []net.Listener
	defer func() { release(taken) }()
	for _, b := range c.brokers {
		ports, err := reserve(len(b.listeners))
		if err != nil {
			return err
		}
		taken = append(taken, ports...)
		if c.opts.Port != 0 {
			port, err := net.Listen("tcp", loopback(c.opts.Port+b.ID-1))
			if err != nil {
				return fmt.Errorf("kafkatest: Port %d: %w", c.opts.Port, err)
			}
			taken = append(taken, port)
			ports[0] = port // the plain listener's
		}
		for i := range b.listeners {
			l := &b.listeners[i]
			l.bind = ports[i].Addr().String()
			if l.name != controllerListener {
				l.advertised = l.bind
			}
		}
		b.Addr = b.listener(plainListener).bind

		kept, err := reserve(c.opts.ProxiedListeners)
		if err != nil {
			return err
		}
		for i, port := range kept {
			c.routes[i] = append(c.routes[i], port)
			for j := range b.listeners {
				if b.listeners[j].name == proxiedListener(i) {
					b.listeners[j].advertised = port.Addr().String()
				}
			}
		}
	}
	return nil
}

// layOutOnHosts gives the listeners of every broker the same ports, each on a host of its own.
func (c *Cluster) layOutOnHosts() {
	const firstPort = 9092
	for i, b := range c.brokers {
		host := c.opts.Hosts[i]
		b.startOn = host.Start
		for j := range b.listeners {
			l := &b.listeners[j]
			l.bind = netip.AddrPortFrom(host.IP, uint16(firstPort+j)).String()
			if l.name != controllerListener {
				l.advertised = l.bind
			}
		}
		b.Addr = b.listener(plainListener).bind
	}
}

// Bootstrap returns the brokers' addresses, separated by commas.
func (c *Cluster) Bootstrap() string { return c.bootstrap(plainListener) }

func (c *Cluster) bootstrap(name string) string {
	var addrs []string
	for _, b := range c.brokers {
		addrs = append(addrs, b.listener(name).advertised)
	}
	return strings.Join(addrs, ",")
}

// Brokers returns the brokers, in the order of their ids, which are 1, 2, ….
func (c *Cluster) Brokers() []*Broker { return c.brokers }

// Stop kills all brokers, whatever state they are in, and removes the cluster's directory unless Options.Dir
// named it. It does without a controlled shutdown, which takes seconds, since the data is not needed. Further
// calls only wait for the first one.
func (c *Cluster) Stop() {
	c.stopOnce.Do(func() {
		if c.nursery != nil {
			c.nursery.Close()
		}
		c.mu.Lock()
		for _, ports := range c.routes {
			release(ports)
		}
		c.routes = nil
		c.mu.Unlock()
	})
}

// portTaken reports whether a broker ended because its port was in use.
func (c *Cluster) portTaken() bool {
	for _, b := range c.brokers {
		if strings.Contains(b.logTail(1<<20), "Address already in use") {
			return true
		}
	}
	return false
}

// empty removes what a failed launch left in a directory.
func empty(dir string) error {
	found, err := os.ReadDir(dir)
	for _, entry := range found {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

// newClusterID returns a random id in Kafka's form of a UUID. Its first bit is 0:
// an id that begins with "-" would be read as an option.
func newClusterID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(id[:])
}
