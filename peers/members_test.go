//go:build linux

package peers_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/peers"
)

// TestManyMembers measures a group of NELI_MEMBERS members with T = 5 s, in one process over real
// sockets: with one role, with ten, and with a role for each member. A slow machine lacks processors
// for the last.
func TestManyMembers(t *testing.T) {
	members, _ := strconv.Atoi(os.Getenv("NELI_MEMBERS"))
	if members == 0 {
		t.Skip("takes a minute and a processor: NELI_MEMBERS=100 runs it")
	}
	for _, roles := range []int{1, 10, members} {
		t.Run(fmt.Sprintf("%d roles", roles), func(t *testing.T) {
			c := peers.Config{Hosts: peers.Hosts(t, 3), HeartbeatTimeout: 5 * time.Second}
			for _, h := range c.Hosts {
				serve(t, c, h.ID)
			}
			began := time.Now()
			all := make([]*neli.Neli, members)
			for i := range all {
				own := config(c, fmt.Sprint("m", i))
				own.HeartbeatTimeout, own.Roles = c.HeartbeatTimeout, roles
				n, err := neli.New(own)
				require.NoError(t, err)
				_, err = n.Background(func() { <-time.After(10 * time.Millisecond) })
				require.NoError(t, err)
				all[i] = n
			}
			led := func() bool {
				led := 0
				for _, n := range all {
					led += len(slices.Collect(n.Led()))
				}
				return led == roles
			}
			require.Eventually(t, led, within, 10*time.Millisecond, "not every role is led")
			t.Logf("all led %v after the first start", time.Since(began).Round(time.Millisecond))
			used, from := processor(t), time.Now()
			<-time.After(20 * time.Second)
			t.Logf("processor: %.2f of one", float64(processor(t)-used)/float64(time.Since(from)))
			require.Eventually(t, led, within, 10*time.Millisecond, "not every role is led any more")
			var closing sync.WaitGroup
			for _, n := range all {
				closing.Go(func() { _ = n.Close() })
			}
			closing.Wait()
		})
	}
}

// processor returns the time of the processor that this process has used.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
