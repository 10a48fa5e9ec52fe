// Package sentinel is a sentinel process beside a member (the runner's binary, executed again), and the
// disturbances of its socket.
package sentinel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/chaos/client"
	"github.com/goneli/neli/peers"
)

// Env makes the binary a sentinel. Its standard input has the parameters, and its end tells the
// sentinel to end; its standard error takes the log.
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
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return fmt.Errorf("reading parameters: %w", err)
	}
	cfg := neli.Config{Sentinel: p.Socket, Name: p.Name,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if p.Peers != nil {
		all := peers.Config{Insecure: true}
		for host, address := range p.Peers {
			all.Hosts = append(all.Hosts, peers.Host{ID: host, Address: address})
		}
		cfg.Provider = peers.Provider(all)
	} else {
		provider, err := client.Provider()
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
