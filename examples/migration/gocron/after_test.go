package gocron

import (
	"context"
	"testing"

	"github.com/goneli/neli"
	"github.com/goneli/neli/examples/migration/internal/trial"
)

func TestAfter(t *testing.T) {
	trial.Run(t, neli.Config{LeaderGroupID: "billing", Roles: 64}, trial.Of(func(ctx context.Context, n *neli.Neli, act func()) error {
		return after(ctx, n, func(int64) { act() })
	}))
}
