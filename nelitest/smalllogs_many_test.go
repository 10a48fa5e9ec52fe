package nelitest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/seeded"
	"github.com/goneli/neli/nelitest"
)

// Five members that start together share a hundred thousand roles, and lead them within a second after the
// wait. With the race detector, which takes ten times as long, there are a tenth of the roles.
func TestSmallLogsWithVeryManyRoles(t *testing.T) {
	roles := 100_000
	if seeded.Race {
		roles = 10_000
	}
	const lease = 10 * time.Second
	wait := lease + lease/999 + time.Millisecond // T′
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		logs := nelitest.NewSmallLogs(3, smallTrip)
		var members []*neli.Neli
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			n, err := neli.New(neli.Config{Provider: logs.Provider(name), LeaderGroupID: "g", Name: name, Roles: roles, HeartbeatTimeout: lease})
			require.NoError(t, err)
			p, err := n.Background(func() { time.Sleep(100 * time.Millisecond) })
			require.NoError(t, err)
			members = append(members, n)
			defer func() {
				assert.NoError(t, n.Close())
				assert.NoError(t, p.Close())
			}()
		}
		led := make([]int, len(members))
		for time.Sleep(wait); ; time.Sleep(20 * time.Millisecond) {
			took, all := time.Since(begun), 0
			clear(led)
			for role := range roles {
				leaders := 0
				for i, n := range members {
					if n.IsLeaderOf(role) {
						led[i]++
						leaders++
					}
				}
				all += min(leaders, 1)
				require.LessOrEqual(t, leaders, 1, "role %d", role)
			}
			if all == roles {
				t.Logf("all are led after %v, by %v", took, led)
				break
			}
			require.Less(t, took, wait+time.Second, "%d are led: %v", all, led)
		}
		for _, n := range led {
			assert.InDelta(t, roles/len(members), n, float64(roles)/20)
		}
	})
}
