package kafkatest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// startZooKeeper starts a ZooKeeper from Kafka's own jars, on the loopback device, and waits until it accepts
// connections.
func (c *Cluster) startZooKeeper(ctx context.Context) error {
	port, err := reserve(1)
	if err != nil {
		return err
	}
	c.zookeeper = port[0].Addr().String()
	release(port)
	host, number, err := net.SplitHostPort(c.zookeeper)
	if err != nil {
		return err
	}
	dir := filepath.Join(c.dir, "zookeeper")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(dir, "zookeeper.properties")
	props := formatProperties(map[string]string{
		"dataDir": dir, "clientPort": number, "clientPortAddress": host, "maxClientCnxns": "0", "admin.enableServer": "false",
	})
	if err := os.WriteFile(file, []byte(props), 0o644); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "zookeeper.log"))
	if err != nil {
		return err
	}
	defer log.Close() // the JVM has its own descriptor
	cmd := c.java("-Xmx128m", "org.apache.zookeeper.server.quorum.QuorumPeerMain", file)
	cmd.Stdout, cmd.Stderr = log, log
	process, err := c.nursery.StartBy(cmd, (*exec.Cmd).Start)
	if err != nil {
		return fmt.Errorf("kafkatest: starting ZooKeeper: %w", err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.DialTimeout("tcp", c.zookeeper, time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-process.Done():
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("kafkatest: ZooKeeper ended (%s):\n%s", process.State(), said)
		case <-ctx.Done():
			return fmt.Errorf("kafkatest: starting ZooKeeper: %w; last: %w", ctx.Err(), err)
		}
	}
}

// stillRegistered reports whether the broker ended because ZooKeeper believes its former incarnation to be alive,
// as it does for 18 s after a crash.
func (b *Broker) stillRegistered() bool {
	if !b.cluster.opts.ZooKeeper {
		return false
	}
	if p := b.current(); p == nil || p.Running() {
		return false
	}
	why := b.complaint()
	return strings.Contains(why, "NodeExists") || strings.Contains(why, "node already exists")
}
