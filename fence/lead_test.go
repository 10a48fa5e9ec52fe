package fence_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/nelitest"
)

// The term ends while its leader is suspended in an init, or at work. Lead treats the error of
// Transactions as the end of the term, and leads again.
func TestLeadGoesOnAfterAStaleTerm(t *testing.T) {
	for _, at := range []string{"init", "work"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				broker := nelitest.NewBroker(nelitest.Options{})
				defer broker.Close()
				n, err := neli.New(neli.Config{Provider: broker.Provider("alice"), LeaderGroupID: "invoicing"})
				require.NoError(t, err)
				defer n.Close()
				d := &desk{fail: map[string][]error{}}
				if at == "init" {
					for range 100 {
						d.fail["init"] = append(d.fail["init"], errHangs)
					}
				}
				var ends []error
				ctx, cancel := context.WithCancel(t.Context())
				led := make(chan error)
				go func() {
					led <- n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
						err := fence.Transactions(ctx, l, d.client, func(ctx context.Context, p *fence.Producer[string]) error {
							for ctx.Err() == nil {
								if err := p.Commit(ctx, "r"); err != nil {
									return err
								}
								time.Sleep(100 * time.Millisecond)
							}
							return fence.ErrRefused // as if the broker had refused its next transaction
						})
						ends = append(ends, err)
						return err
					})
				}()
				time.Sleep(20 * time.Second)
				broker.Freeze("alice")
				time.Sleep(10 * time.Second)
				broker.Resume("alice")
				d.mu.Lock()
				d.fail["init"] = nil
				d.mu.Unlock()
				time.Sleep(20 * time.Second)
				require.True(t, n.IsLeader(), "it leads again")
				cancel()
				require.NoError(t, <-led)
				require.Len(t, ends, 2)
				require.ErrorIs(t, ends[0], fence.ErrStale)
				require.ErrorIs(t, ends[0], neli.ErrFenced)
				require.ErrorIs(t, ends[1], context.Canceled)
				require.NotEmpty(t, d.committed)
			})
		})
	}
}
