package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/clients"
	"github.com/goneli/neli/lab/witness"
	"github.com/goneli/neli/peers"
)

type neliContender struct {
	*neli.Neli
	roles    int
	watched  bool                 // by a sentinel, when it is ready
	assigned *atomic.Bool         // nil if the nomination needs no group
	metadata func() time.Duration // the time at which a server first described the log; 0 before
	holders  atomic.Int64         // the time at which the holders of all roles were known; 0 before
}

func newNeli(p Params) (Contender, error) {
	c := &neliContender{roles: max(1, p.Roles), watched: p.Sentinel != ""}
	provider, servers, err := c.provider(p)
	if err != nil {
		return nil, err
	}
	handler := slog.Handler(slog.NewTextHandler(os.Stderr, nil))
	nomination := neli.NominationOpen
	if p.Assigned {
		nomination, c.assigned = neli.NominationAssigned, new(atomic.Bool)
		handler = groupWatch{handler, c.assigned}
	}
	c.Neli, err = neli.New(neli.Config{
		KafkaConfig:      servers,
		LeaderGroupID:    p.Group,
		Name:             p.Name,
		Nomination:       nomination,
		Roles:            c.roles,
		Logs:             p.Logs,
		Priority:         p.Priority,
		HeartbeatTimeout: p.Lease,
		Logger:           slog.New(handler),
		Provider:         provider,
		Sentinel:         p.Sentinel,
	})
	if err != nil {
		return nil, err
	}
	go c.lead()
	go c.learn()
	return c, nil
}

// provider returns the provider of the Kafka cluster, with its addresses, or that of the small
// logs.
func (c *neliContender) provider(p Params) (kafka.Provider, neli.KafkaConfigMap, error) {
	if len(p.Hosts) == 0 {
		provider, err := clients.Named(p.Client)
		if err != nil {
			return nil, nil, err
		}
		seen := clients.Observe(provider, witness.Now)
		c.metadata = seen.Metadata
		return seen, neli.KafkaConfigMap{"bootstrap.servers": strings.Join(p.Servers, ",")}, nil
	}
	began := witness.Now()
	c.metadata = func() time.Duration { return began }
	config := peers.Config{Self: p.Host}
	for _, h := range p.Hosts {
		config.Hosts = append(config.Hosts, peers.Host{ID: h.ID, Address: h.Addr})
	}
	return peers.Provider(config), nil, nil
}

func (c *neliContender) lead() {
	err := c.Lead(context.Background(), func(ctx context.Context, _ neli.Leadership) error {
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, neli.ErrClosed) {
		fmt.Fprintln(os.Stderr, "Lead has ended:", err)
		os.Exit(1)
	}
}

// A member that joins learns the holders quickly. The members of a new group have to wait until
// there are holders.
const (
	learnEvery = 2 * time.Millisecond
	learnSoon  = time.Second
	learnLater = 20 * time.Millisecond
)

// learn asks for the holder of each role until it is known.
func (c *neliContender) learn() {
	every := learnEvery
	began := time.Now()
	for role := 0; role < c.roles; {
		if _, known := c.Holder(role); known {
			role++
			continue
		}
		if time.Since(began) > learnSoon {
			every = learnLater
		}
		time.Sleep(every)
	}
	c.holders.Store(int64(witness.Now()))
}

func (c *neliContender) Learnt() Learnt {
	return Learnt{Metadata: c.metadata(), Holders: time.Duration(c.holders.Load())}
}

// Leads reports whether it leads all roles.
func (c *neliContender) Leads() bool {
	for role := range c.roles {
		if !c.IsLeaderOf(role) {
			return false
		}
	}
	return true
}

// Check calls the library's check for any one role.
func (c *neliContender) Check() bool {
	if c.roles == 1 {
		return c.IsLeader()
	}
	return c.IsLeaderOf(c.roles - 1)
}

// Ready reports whether it leads, or has read who holds the roles and was taken into the group.
// With a sentinel, it must also be watched.
func (c *neliContender) Ready() bool {
	if c.watched && c.Stats().Sentinel != "watching" {
		return false
	}
	return c.Leads() || c.holders.Load() > 0 && (c.assigned == nil || c.assigned.Load())
}

// groupWatch reads in the log that the group has made an assignment, which the library does not report elsewhere. It
// drops debug lines, which would cost CPU.
type groupWatch struct {
	slog.Handler
	assigned *atomic.Bool
}

func (h groupWatch) Enabled(_ context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || !h.assigned.Load()
}

func (h groupWatch) WithAttrs(attrs []slog.Attr) slog.Handler {
	return groupWatch{h.Handler.WithAttrs(attrs), h.assigned}
}

func (h groupWatch) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "the group assigned" {
		h.assigned.Store(true)
	}
	if r.Level < slog.LevelInfo {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
