package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/clients"
	"github.com/goneli/neli/peers"
)

type neliContender struct {
	*neli.Neli
	watched bool // it is ready only once a sentinel watches it
}

func newNeli(p Params) (Contender, error) {
	provider, servers, err := providerOf(p)
	if err != nil {
		return nil, err
	}
	n, err := neli.New(neli.Config{
		KafkaConfig:      servers,
		LeaderGroupID:    p.Group,
		Name:             p.Name,
		HeartbeatTimeout: p.Lease,
		Logger:           slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Provider:         provider,
		Sentinel:         p.Sentinel,
	})
	if err != nil {
		return nil, err
	}
	c := &neliContender{n, p.Sentinel != ""}
	go c.lead()
	return c, nil
}

// providerOf returns the provider of the Kafka cluster, with its addresses, or that of the small logs.
func providerOf(p Params) (kafka.Provider, neli.KafkaConfigMap, error) {
	if len(p.Hosts) == 0 {
		provider, err := clients.Named(p.Client)
		return provider, neli.KafkaConfigMap{"bootstrap.servers": strings.Join(p.Servers, ",")}, err
	}
	config := peers.Config{Self: p.Host}
	for _, h := range p.Hosts {
		config.Hosts = append(config.Hosts, peers.Host{ID: h.ID, Address: h.Addr})
	}
	return peers.Provider(config), nil, nil
}

func (c *neliContender) lead() {
	err := c.Neli.Lead(context.Background(), func(ctx context.Context, _ neli.Leadership) error {
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, neli.ErrClosed) {
		fmt.Fprintln(os.Stderr, "Lead has ended:", err)
		os.Exit(1)
	}
}

// Leads asks the library.
func (c *neliContender) Leads() bool { return c.IsLeader() }

// Ready reports whether it leads, or has read who does. With a sentinel, it must also be watched.
func (c *neliContender) Ready() bool {
	if c.watched && c.Stats().Sentinel != "watching" {
		return false
	}
	_, known := c.Holder(0)
	return known || c.Leads()
}
