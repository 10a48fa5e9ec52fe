package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/confluent"
	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/peers"
)

// Kinds of trials of groups that have a sentinel beside their members.
const (
	Both Kind = "SIGKILL of the leader and its sentinel"
	Lone Kind = "SIGKILL of the only member, started again"
)

// Registered are the numbers of watched members for which a sentinel's cost is measured.
var Registered = []int{1, 100, 1000}

// watched returns s with a sentinel beside the members of each group.
func watched(s System) System {
	s.Setting += ", sentinel"
	s.Sentinel, s.Idle = true, nil
	s.Kinds = []Kind{Kill, Both}
	return s
}

// sentinelSystems are those on a Kafka: T of 5 s and of 1 s, one role and many.
func sentinelSystems(bed string, brokers int) []System {
	var all []System
	for _, t := range []time.Duration{5 * time.Second, time.Second} {
		one := watched(NeliSystem(bed, false, t))
		one.Kinds = append(one.Kinds, Lone)
		if brokers == 1 && t == 5*time.Second {
			one.Registered = Registered
		}
		all = append(all, one, watched(manyRoles(bed, t)))
	}
	return all
}

// watchedOnPeers are the systems with a sentinel and without a broker: the leader's log dies with
// the leader.
func watchedOnPeers(bed string) System {
	return watched(peersSystem(bed, time.Second))
}

// A Sentinel is a sentinel in a process of its own.
type Sentinel struct {
	*child.Process
	Socket string
}

// SentinelCommand and CrowdCommand are the subcommands that make this program a sentinel, and a
// process that registers many members at a sentinel.
const (
	SentinelCommand = "sentinel"
	CrowdCommand    = "registered"
)

// StartSentinel starts a sentinel with the logs of the given member. Its socket is in a directory
// of the group.
func StartSentinel(place Place, of member.Params) (Sentinel, error) {
	s := Sentinel{Socket: SocketOf(place, of.Group)}
	of.Sentinel, of.Host = s.Socket, ""
	var err error
	s.Process, err = place.Child(SentinelCommand, of.Group+"-sentinel", of, nil)
	return s, err
}

// SocketOf is where a group's sentinel listens.
func SocketOf(place Place, group string) string { return filepath.Join(place.Dir, group, "s") }

// SentinelMain runs a sentinel until SIGKILL.
func SentinelMain() error {
	var of member.Params
	if _, err := child.Begin(&of); err != nil {
		return err
	}
	c := neli.Config{Sentinel: of.Sentinel, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if len(of.Hosts) > 0 {
		config := peers.Config{}
		for _, h := range of.Hosts {
			config.Hosts = append(config.Hosts, peers.Host{ID: h.ID, Address: h.Addr})
		}
		c.Provider = peers.Provider(config)
	} else {
		c.KafkaConfig = neli.KafkaConfigMap{"bootstrap.servers": strings.Join(of.Servers, ",")}
	}
	return neli.RunSentinel(context.Background(), c)
}

// crowd has the parameters of a process that registers many members.
type crowd struct {
	Of      member.Params
	Members int
}

// patience bounds how long members wait to be watched. drift is the default of
// Config.MaxClockDrift.
const (
	patience = time.Minute
	drift    = 0.0005
)

// Register starts a process that registers many members of the group at its sentinel, and returns
// when all are watched. They do nothing else: a member that does not lead writes nothing to the log
// either.
func Register(ctx context.Context, place Place, of member.Params, members int) (*child.Process, error) {
	process, watched, err := place.serve(ctx, CrowdCommand, fmt.Sprintf("%s-registered-%d", of.Group, members), crowd{of, members})
	if err == nil && watched != fmt.Sprint(members) {
		process.Kill()
		err = fmt.Errorf("%s of %d members are watched", watched, members)
	}
	return process, err
}

// CrowdMain runs a process that registers many members. Each has a secret, a connection and a pidfd
// of its own, as separate processes would.
func CrowdMain() error {
	var c crowd
	self, err := child.Begin(&c)
	if err != nil {
		return err
	}
	topic := c.Of.Group + ".neli"
	id, err := topicID(c.Of.Servers, topic)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var clients []*sentinel.Client
	var work sync.WaitGroup
	for i := range c.Members {
		secret := sentinel.NewSecret()
		client := sentinel.NewClient(c.Of.Sentinel, logger)
		client.Opened(sentinel.Registration{Topic: topic, TopicID: id, Group: c.Of.Group, Process: sentinel.ProcessID(secret), Secret: secret,
			Name: fmt.Sprint("registered ", i), T: c.Of.Lease, Rho: drift})
		work.Go(func() { client.Run(context.Background()) })
		clients = append(clients, client)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for slices.ContainsFunc(clients, func(c *sentinel.Client) bool { return c.State() != sentinel.Watching }) && ctx.Err() == nil {
		<-tick.C
	}
	n := 0
	for _, client := range clients {
		if client.State() == sentinel.Watching {
			n++
		}
	}
	self.Tell(n)
	work.Wait() // until it is killed
	return errors.New("the registrations have ended")
}

// topicID asks a broker for a topic's id.
func topicID(servers []string, topic string) (string, error) {
	provider, err := confluent.New()
	if err != nil {
		return "", err
	}
	silent := slog.New(slog.DiscardHandler)
	producer, err := provider.Producer(map[string]string{"bootstrap.servers": strings.Join(servers, ",")}, silent)
	if err != nil {
		return "", err
	}
	defer producer.Close()
	admin, err := provider.Admin(producer)
	if err != nil {
		return "", err
	}
	defer admin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var info kafka.TopicInfo
	if info, err = admin.Topic(ctx, topic); err != nil {
		return "", err
	}
	return info.ID, nil
}
