package nelihttp

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// The group gives the only partition to one of two members. The other one reads nothing, and is healthy.
func TestAFollowerInNonExclusiveModeIsHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		defer b.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		var all []*neli.Neli
		for _, name := range []string{"alice", "bob"} {
			n, err := neli.New(neli.Config{LeaderGroupID: "g", Mode: neli.NonExclusive, Partitions: 1, Provider: b.Provider(name)})
			require.NoError(t, err)
			all = append(all, n)
			go func() {
				ended <- n.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil })
			}()
		}
		time.Sleep(10 * time.Minute)
		for i, n := range all {
			w, body := ask(t, Handler(n), "GET", "/healthz")
			if w.Code != http.StatusOK {
				t.Errorf("member %d, leader %v: status %d: %s", i, n.IsLeader(), w.Code, body)
			}
		}
		cancel()
		for range all {
			require.NoError(t, <-ended)
		}
		for _, n := range all {
			require.NoError(t, n.Close())
		}
	})
}
