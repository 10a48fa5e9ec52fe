package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/peers"
)

// Parameters on which a log host and its client agree. With a long T the host sends little besides
// the records.
const (
	hostT   = 10 * time.Second
	hostRho = 0.0005
)

func oneHost(addr string) peers.Config {
	return peers.Config{Hosts: []peers.Host{{ID: "a", Address: addr}}}
}

// Serve is a log host for round trips, until ctx is done.
func Serve(ctx context.Context, addr string) error {
	c := oneHost(addr)
	c.Self, c.Group, c.HeartbeatTimeout, c.MaxClockDrift = c.Hosts[0].ID, group, hostT, hostRho
	return peers.ListenAndServe(ctx, c)
}

// OpenHost connects to a log host that runs Serve in another process.
func OpenHost(ctx context.Context, addr string) (*Probe, error) {
	provider, ok := peers.Provider(oneHost(addr)).(kafka.SmallLogs)
	if !ok {
		return nil, errors.New("package peers gives no small logs")
	}
	set, err := provider.SmallLogs(ctx, kafka.LogSettings{Group: group, Name: "probe", HeartbeatTimeout: hostT, MaxClockDrift: hostRho, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	h := &hostWay{set: set}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for h.id == "" {
		if _, ok := h.read(ctx); !ok && ctx.Err() != nil {
			h.close()
			return nil, fmt.Errorf("waiting for the log host %s: %w", addr, context.Cause(ctx))
		}
	}
	return &Probe{way: h}, nil
}

// hostWay is a connection to one log host.
type hostWay struct {
	set kafka.LogSet
	id  string // of the incarnation; empty before reading has begun
}

func (h *hostWay) append(value []byte) error {
	return h.set.Append(0, h.id, value, 0, func(error) {})
}

func (h *hostWay) read(ctx context.Context) (value []byte, ok bool) {
	e, ok, err := h.set.Next(ctx, wait)
	if err != nil || !ok {
		return nil, false
	}
	if e.Kind == kafka.LogReset {
		h.id = e.ID
	}
	return e.Value, e.Kind == kafka.LogRecord
}

func (h *hostWay) close() { _ = h.set.Close() }
