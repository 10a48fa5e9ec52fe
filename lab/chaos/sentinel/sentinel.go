// Package sentinel is a sentinel process beside a member (the runner's binary, executed again), and the
// disturbances of its socket.
package sentinel

import (
	"context"
	"io"
	"os"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/clients"
	"github.com/goneli/neli/peers"
)

// Env makes the binary a sentinel, a child of the runner. It ends with its standard input.
const Env = "NELI_CHAOS_SENTINEL"

// Params is what a sentinel reads first.
type Params struct {
	Name      string
	Socket    string
	Bootstrap string
	Peers     map[string]string // addresses by host name, in place of brokers
}

// Main runs the sentinel.
func Main() error {
	var p Params
	self, err := child.Begin(&p)
	if err != nil {
		return err
	}
	cfg := neli.Config{Sentinel: p.Socket, Name: p.Name, Logger: self.Logger()}
	if p.Peers != nil {
		all := peers.Config{Insecure: true}
		for host, address := range p.Peers {
			all.Hosts = append(all.Hosts, peers.Host{ID: host, Address: address})
		}
		cfg.Provider = peers.Provider(all)
	} else {
		provider, err := clients.Chosen()
		if err != nil {
			return err
		}
		cfg.Provider, cfg.KafkaConfig = provider, neli.KafkaConfigMap{"bootstrap.servers": p.Bootstrap}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return neli.RunSentinel(ctx, cfg)
}
