package etcd

import (
	"context"
	"time"

	"github.com/goneli/neli"
)

// n is New(Config{LeaderGroupID: "billing-invoicing", Name: name, HeartbeatTimeout: 10 * time.Second}).
func after(ctx context.Context, n *neli.Neli, send func(token int64)) error {
	return n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
		for tick := time.Tick(time.Second); ctx.Err() == nil; { // checks the clock
			send(l.Token)
			select {
			case <-ctx.Done():
			case <-tick:
			}
		}
		return nil // gives the role up, since ctx has ended
	})
}

func leaderAfter(n *neli.Neli) (string, bool) {
	holder, ok := n.Holder(0)
	return holder.Name, ok
}
