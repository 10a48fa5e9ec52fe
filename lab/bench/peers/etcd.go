package peers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/embed"
	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/kafkatest"
)

// ServerCommand is the subcommand that makes this program an etcd member.
const ServerCommand = "server"

// etcdParams are the parameters of such a process.
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
	defaultTTL     = 60 * time.Second
)

type etcdCluster struct {
	processes []*child.Process
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
		bed.Systems = []System{slow}
	}
	bed.Start = func(ctx context.Context, p Place) (Servers, error) { return startEtcd(ctx, p, tick, election) }
	return bed
}

// etcdSystem asks for a TTL, 0 for etcd's default. nominal is the TTL that it then has.
func etcdSystem(bed, setting string, ttl, nominal time.Duration) System {
	return System{Family: "etcd", Bed: bed, Setting: setting, Lease: nominal, Beat: nominal / 3, Settle: 300 * time.Millisecond,
		Idle: true, Kinds: common, Members: func(servers Servers, group string) Group {
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
	c.processes = make([]*child.Process, Size)
	var starting errgroup.Group
	for i := range Size {
		starting.Go(func() (err error) {
			name := fmt.Sprintf("e%d", i)
			c.processes[i], err = place.serve(ctx, ServerCommand, filepath.Base(dir)+"-"+name, etcdParams{Name: name, Client: "http://" + addrs[i],
				Peer: "http://" + addrs[Size+i], Cluster: strings.Join(cluster, ","), Dir: filepath.Join(dir, name), TickMs: tick, ElectionMs: election})
			return err
		})
	}
	return c, starting.Wait()
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
		if p != nil {
			p.Kill()
		}
	}
}

// ServerMain runs an etcd member.
func ServerMain() error {
	var p etcdParams
	self, err := child.Begin(&p)
	if err != nil {
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
		self.Tell("ready")
	case err := <-e.Err():
		return err
	}
	if err := <-e.Err(); err != nil {
		return err
	}
	return errors.New("the server has stopped")
}
