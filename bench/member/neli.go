package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"github.com/goneli/neli"
)

type neliContender struct {
	*neli.Neli
	assigned *atomic.Bool // nil if no group is needed
}

func newNeli(p Params) (Contender, error) {
	c := &neliContender{}
	handler := slog.Handler(slog.NewTextHandler(os.Stderr, nil))
	nomination := neli.Open
	if p.Assigned {
		nomination, c.assigned = neli.Assigned, new(atomic.Bool)
		handler = groupWatch{handler, c.assigned}
	}
	var err error
	c.Neli, err = neli.New(neli.Config{
		KafkaConfig:      neli.KafkaConfigMap{"bootstrap.servers": strings.Join(p.Servers, ",")},
		LeaderGroupID:    p.Group,
		Name:             p.Name,
		Nomination:       nomination,
		HeartbeatTimeout: p.Lease,
		Logger:           slog.New(handler),
	})
	if err != nil {
		return nil, err
	}
	go c.lead()
	return c, nil
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

func (c *neliContender) Leads() bool { return c.IsLeader() }

// Ready: it has read of a holder, and the group has taken it in.
func (c *neliContender) Ready() bool {
	if c.IsLeader() {
		return true
	}
	_, known := c.Holder(0)
	return known && (c.assigned == nil || c.assigned.Load())
}

// groupWatch sees in the log that the group has given an assignment, which the
// library tells in no other way. Debug lines go no further: they cost CPU.
type groupWatch struct {
	slog.Handler
	assigned *atomic.Bool
}

func (h groupWatch) Enabled(_ context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || !h.assigned.Load()
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
