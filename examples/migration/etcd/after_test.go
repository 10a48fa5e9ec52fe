package etcd

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/examples/migration/internal/trial"
)

// before and leaderBefore are only compiled, since they need an etcd.
var _, _ = before, leaderBefore

func TestAfter(t *testing.T) {
	var last int64
	trial.Run(t, neli.Config{LeaderGroupID: "billing-invoicing", HeartbeatTimeout: 10 * time.Second},
		trial.Of(func(ctx context.Context, n *neli.Neli, act func()) error {
			return after(ctx, n, func(token int64) {
				act()
				require.GreaterOrEqual(t, token, last) // needs no lock, since only one process sends at a time
				last = token
				name, ok := leaderAfter(n)
				require.True(t, ok)
				require.Equal(t, n.Config().Name, name)
			})
		}))
}
