package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/chaos/jail"
	"github.com/goneli/neli/chaos/wire"
	"github.com/goneli/neli/testkit/kafkatest"
	"github.com/goneli/neli/testkit/pause"
)

// The election that is demonstrated.
const (
	group    = "nightly-report"
	topic    = group + ".neli"
	timeout  = 5 * time.Second // T, the command's default
	pagePort = 9108
	promPort = 9090
	brokers  = 3
)

// Hosts other than brokers and machines.
const (
	hostDesk    = "desk"    // of the operator
	hostMonitor = "monitor" // of Prometheus
)

// machineNames are the hosts on which neli runs.
var machineNames = []string{"a", "b", "c"}

func brokerHost(i int) string { return fmt.Sprintf("kafka%d", i+1) }

// hostNames returns the names of all hosts.
func hostNames() []string {
	return slices.Concat([]string{hostDesk, hostMonitor}, machineNames, brokerHosts())
}

func brokerHosts() (names []string) {
	for i := range brokers {
		names = append(names, brokerHost(i))
	}
	return names
}

// site is everything that build starts.
type site struct {
	options
	log      *slog.Logger
	net      *wire.Net
	cluster  *kafkatest.Cluster
	kafka    *kgo.Client
	stations map[string]*station
	prom     *exec.Cmd
	witness  string       // the file that jobs write
	client   *http.Client // connects from the desk
}

// build starts brokers, Prometheus and machines. The caller closes what it returns, even after an
// error.
func build(ctx context.Context, o options, log *slog.Logger) (*site, error) {
	s := &site{options: o, log: log, stations: map[string]*station{}, witness: filepath.Join(jail.Scratch, "witness")}
	command := filepath.Join(jail.Scratch, "neli")
	building := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(o.root, "cmd/neli"), "-o", command, ".")
	building.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := building.CombinedOutput(); err != nil {
		return s, fmt.Errorf("building neli: %w\n%s", err, out)
	}
	if err := errors.Join(os.RemoveAll(o.out), os.MkdirAll(o.out, 0o755)); err != nil {
		return s, err
	}
	var err error
	if s.net, err = wire.New(1, hostNames()...); err != nil {
		return s, err
	}
	desk := s.net.Host(hostDesk)
	s.client = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DialContext: desk.Dial}}
	s.cluster, err = kafkatest.Start(ctx, kafkatest.Options{Brokers: brokers, Hosts: s.net.Brokers(brokerHosts()...), Dial: desk.Dial,
		Dir: filepath.Join(jail.Scratch, "kafka"), Log: log})
	if err != nil {
		return s, err
	}
	s.kafka, err = kgo.NewClient(kgo.SeedBrokers(strings.Split(s.cluster.Bootstrap(), ",")...), kgo.Dialer(desk.Dial))
	if err != nil {
		return s, err
	}
	if err := s.startPrometheus(); err != nil {
		return s, err
	}
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	for _, name := range machineNames {
		m := &station{name: name, host: s.net.Host(name), logFile: filepath.Join(o.out, name+".log"), command: []string{command, "run",
			"--bootstrap", s.cluster.Bootstrap(), "--group", group, "--name", name, "--timeout", timeout.String(),
			"--listen", s.page(name), "--log-level", "info", "--", self, roleJob, s.witness}}
		s.stations[name] = m
		if err := m.boot(); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *site) close() {
	for _, m := range s.stations {
		m.powerOff()
	}
	if s.prom != nil {
		_ = s.prom.Process.Kill()
		_ = s.prom.Wait()
	}
	if s.kafka != nil {
		s.kafka.Close()
	}
	if s.cluster != nil {
		if err := s.cluster.KeepLogs(s.out); err != nil {
			s.log.Warn("keeping the brokers' logs", "error", err)
		}
		s.cluster.Stop()
	}
	if s.net != nil {
		s.net.Close()
	}
}

// page is where a machine serves its page and metrics.
func (s *site) page(machine string) string { return s.address(machine, pagePort) }

func (s *site) address(host string, port int) string {
	return net.JoinHostPort(s.net.Host(host).IP.String(), fmt.Sprint(port))
}

// cut disconnects a host from the network, or reconnects it.
func (s *site) cut(host string, off bool) {
	for _, other := range hostNames() {
		if other != host {
			s.net.Set(host, other, wire.Policy{Cut: off})
			s.net.Set(other, host, wire.Policy{Cut: off})
		}
	}
}

// leaderBroker is the index of the broker that leads the election's partition.
func (s *site) leaderBroker(ctx context.Context) (int, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, s.kafka)
	if err != nil {
		return 0, err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.Leader > 0 {
				return int(p.Leader) - 1, nil
			}
		}
	}
	return 0, fmt.Errorf("no broker leads %s", topic)
}

// until waits for a condition.
func until(ctx context.Context, within time.Duration, what string, cond func() bool) error {
	if !pause.Until(ctx, within, cond) {
		return fmt.Errorf("not within %v: %s", within, what)
	}
	return nil
}
