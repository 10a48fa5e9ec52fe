package clientgo

import (
	"context"
	"testing"

	"github.com/goneli/neli"
	"github.com/goneli/neli/examples/migration/internal/trial"
)

func TestAfter(t *testing.T) {
	trial.Run(t, neli.Config{}, func(ctx context.Context, config neli.Config, act func()) error {
		return after(ctx, config, config.Name, act)
	})
}
