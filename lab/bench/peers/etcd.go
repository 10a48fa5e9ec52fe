package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/nursery"
)

// ServerCommand is the subcommand that makes this program an etcd member.
const ServerCommand = "server"

// etcdParams is what such a process reads from its standard input.
type etcdParams struct {
	Name, Client, Peer, Cluster, Dir string
	TickMs, ElectionMs               uint // 0 for the default
}

// These are the fastest settings for a session. etcd grants no lease shorter than one and a half
// election timeouts, rounded up to whole seconds: that is 2 s with the default timeout of 1 s.
// These settings allow 1 s, and keep the ratio of 10 that etcd's tuning guide asks for.
const (
	fastTickMs     = 50
	fastElectionMs = 500
	fastTTL        = time.Second
	shortTTL       = 2 * time.Second
	defaultTTL     = 60 * time.Second
)

type etcdCluster struct {
	processes []*nursery.Process
	addrs     []string
}

// etcdBed has servers with the default timings, or with the fastest.
func etcdBed(fast bool) Bed {
	bed := Bed{Name: "3 members", Family: "etcd"}
	var tick, election uint
	if fast {
		bed.Name += ", heartbeat 50 ms"
		tick, election = fastTickMs, fastElectionMs
		bed.Systems = []System{etcdSystem(bed.Name, "fastest: TTL 1 s", fastTTL, fastTTL)}
	} else {
		slow := etcdSystem(bed.Name, "default: TTL 60 s", 0, defaultTTL)
		slow.Few = true
		bed.Systems = []System{slow, etcdSystem(bed.Name, "shortest that these servers grant: TTL 2 s", shortTTL, shortTTL)}
	}
	bed.Start = func(ctx context.Context, p Place) (Servers, error) { return startEtcd(ctx, p, tick, election) }
	return bed
}

// etcdSystem asks for a TTL, 0 for etcd's default. nominal is the TTL that it then has.
func etcdSystem(bed, setting string, ttl, nominal time.Duration) System {
	return System{Family: "etcd", Bed: bed, Setting: setting, Lease: nominal, Beat: nominal / 3, Settle: 300 * time.Millisecond,
		Idle: []int{Size, 30}, Kinds: common, Members: func(servers Servers, group string) Group {
			return plain{member.Params{Kind: member.Etcd, Lease: ttl, Group: group, Servers: servers.(*etcdCluster).addrs}}
		}}
}

func startEtcd(ctx context.Context, place Place, tick, election uint) (_ *etcdCluster, err error) {
	dir, err := os.MkdirTemp(place.Dir, "etcd-")
	if err != nil {
		return nil, err
	}
	addrs, err := kafkatest.FreeAddrs(2 * Size)
	if err != nil {
		return nil, err
	}
	c := &etcdCluster{addrs: addrs[:Size]}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	var cluster []string
	for i, peer := range addrs[Size:] {
		cluster = append(cluster, fmt.Sprintf("e%d=http://%s", i, peer))
	}
	ready := make(chan error, Size)
	for i := range Size {
		name := fmt.Sprintf("e%d", i)
		p, err := startServer(place, filepath.Join(dir, name+".log"), etcdParams{Name: name, Client: "http://" + addrs[i], Peer: "http://" + addrs[Size+i],
			Cluster: strings.Join(cluster, ","), Dir: filepath.Join(dir, name), TickMs: tick, ElectionMs: election}, ready)
		if err != nil {
			return nil, err
		}
		c.processes = append(c.processes, p)
	}
	for range Size {
		select {
		case err := <-ready:
			if err != nil {
				return nil, fmt.Errorf("etcd: %w; its log is in %s", err, dir)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return c, nil
}

// startServer starts one etcd member and says on ready when it serves.
func startServer(place Place, log string, params etcdParams, ready chan<- error) (*nursery.Process, error) {
	cmd, err := Self(ServerCommand)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	cmd.Stdin = strings.NewReader(string(text) + "\n")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	errors, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer errors.Close() // the process has its own descriptor
	cmd.Stderr = errors
	p, err := place.Start(cmd)
	if err != nil {
		return nil, err
	}
	go func() { ready <- firstLine(cmd, bufio.NewScanner(out)) }()
	return p, nil
}

func firstLine(cmd *exec.Cmd, out *bufio.Scanner) error {
	if !out.Scan() {
		return fmt.Errorf("%s has ended", cmd.Path)
	}
	return nil
}

func (c *etcdCluster) Pids() []int {
	var pids []int
	for _, p := range c.processes {
		pids = append(pids, p.Pid())
	}
	return pids
}

func (c *etcdCluster) Version() string { return "etcd " + version.Version }

func (c *etcdCluster) Stop() {
	for _, p := range c.processes {
		p.Kill()
	}
}

// ServerMain runs an etcd member.
func ServerMain() error {
	var p etcdParams
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return err
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.InitialCluster = p.Name, p.Dir, p.Cluster
	cfg.LogLevel, cfg.LogOutputs = "error", []string{"stderr"}
	client, err := url.Parse(p.Client)
	if err != nil {
		return err
	}
	peer, err := url.Parse(p.Peer)
	if err != nil {
		return err
	}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	if p.TickMs > 0 {
		cfg.TickMs, cfg.ElectionMs = p.TickMs, p.ElectionMs
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
		fmt.Println("ready")
	case err := <-e.Err():
		return err
	}
	if err := <-e.Err(); err != nil {
		return err
	}
	return errors.New("the server has stopped")
}
