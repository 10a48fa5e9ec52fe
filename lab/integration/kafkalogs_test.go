package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
)

// logsTimeout is T: the one that survives a crash on a busy machine (docs/tuning.md). A replicated topic takes nine times
// that to recover from a killed broker.
const logsTimeout = time.Second

// On three logs, each on a broker of its own, a broker's crash ends no term at T = 1 s, and a broker that comes back with
// an empty log does not lead to a second leader. How long a starting broker delays the others depends on the machine, so a
// term may be lost with some of the brokers, but not with all of them. There are never two leaders, and no token goes back.
func TestLogsOfOneBrokerEach(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kafka")
	cluster := kafkatest.Run(t, kafkatest.Options{Brokers: 3, BrokerProps: hostileBroker(), Dir: dir})
	group := fmt.Sprintf("logs-%d", hostileNumber.Add(1))
	var members []*hostileMember
	for i := range 3 {
		cfg, log := hostileConfig(cluster.Bootstrap(), "unused", func(c *neli.Config) {
			c.Nomination, c.Logs, c.HeartbeatTimeout, c.Name = neli.NominationOpen, 3, logsTimeout, fmt.Sprint("m", i)
		})
		cfg.LeaderGroupID, cfg.LeaderTopic = group, group
		members = append(members, hostileStart(t, cfg, log))
	}
	o := watchOver(t, members)
	took := o.until(t, patience, "somebody leads", func(leader string, _ int64) bool { return leader != "" })
	t.Logf("led after %v", took.Round(time.Millisecond))
	topic := group + fmt.Sprintf(".logs-3.t-%v.rho-0.0005", logsTimeout)
	where := map[int]int{} // broker → its log
	for _, p := range newHostileAdmin(t, cluster.Bootstrap()).describe(t, topic).Partitions {
		require.Len(t, p.Replicas, 1)
		where[int(p.Replicas[0])] = int(p.Partition)
	}
	require.Len(t, where, 3, "one log on each broker")

	kept := 0
	for i, b := range cluster.Brokers() {
		_, token := o.now()
		b.Kill()
		o.pass(4 * logsTimeout)
		leader, now := o.now()
		if now == token && leader != "" {
			kept++
		}
		t.Logf("broker %d killed: token %d, then %d; longest time without a leader so far %v", b.ID, token, now, o.longest())
		if i == 1 { // it comes back with nothing
			logs, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("broker-%d", b.ID), "data", fmt.Sprintf("%s-%d", topic, where[b.ID])))
			require.NoError(t, err)
			require.Len(t, logs, 1)
			require.NoError(t, os.RemoveAll(logs[0]))
		}
		if i == 2 {
			break // it stays away
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		require.NoError(t, b.Restart(ctx))
		cancel()
		// The log counts again after its epoch was waited out and it was claimed.
		resets := func() bool {
			return !slices.ContainsFunc(members, func(m *hostileMember) bool { return m.Stats().LogResets < uint64(i+1) })
		}
		hostileUntil(t, time.Minute, resets, "all members begin anew with the log of the broker that is back")
		o.pass(4 * logsTimeout)
		o.until(t, patience, "somebody leads", func(leader string, _ int64) bool { return leader != "" })
	}
	o.until(t, patience, "somebody leads in the end", func(leader string, _ int64) bool { return leader != "" })
	require.Positive(t, kept, "some crash of a broker must cost no term")
	t.Logf("%d of 3 crashes cost no term", kept)
}

// oversight checks all the time who leads.
type oversight struct {
	t       *testing.T
	members []*hostileMember

	mu     sync.Mutex
	leader string
	token  int64
	newest int64
	vacant time.Time // since when; zero: it is led
	worst  time.Duration
}

func watchOver(t *testing.T, members []*hostileMember) *oversight {
	o := &oversight{t: t, members: members}
	done := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				o.look()
			}
		}
	})
	t.Cleanup(func() { close(done); work.Wait() })
	return o
}

// look asserts that at most one member leads, with a token that does not go back. If leadership moves between the checks
// of two members, both may say that they lead; then the first one is asked again.
func (o *oversight) look() {
	leader, token := "", int64(0)
	var first *hostileMember
	for _, m := range o.members {
		if k, ok := m.Token(0); ok {
			if first != nil {
				again, still := first.Token(0)
				assert.False(o.t, still && again == token, "%s and %s lead", leader, m.Config().Name)
			}
			first, leader, token = m, m.Config().Name, k
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	switch {
	case leader != "":
		if leader != o.leader && o.leader != "" {
			assert.Greater(o.t, token, o.newest, "token of %s after that of %s", leader, o.leader)
		}
		assert.GreaterOrEqual(o.t, token, o.newest)
		if !o.vacant.IsZero() {
			o.worst, o.vacant = max(o.worst, now.Sub(o.vacant)), time.Time{}
		}
		o.leader, o.token, o.newest = leader, token, max(o.newest, token)
	case o.newest > 0 && o.vacant.IsZero():
		o.vacant = now
	}
}

// now returns the leader, if there is one, and its token.
func (o *oversight) now() (string, int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.vacant.IsZero() || o.newest == 0 {
		return "", o.token
	}
	return o.leader, o.token
}

func (o *oversight) longest() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.worst.Round(time.Millisecond)
}

func (o *oversight) until(t *testing.T, within time.Duration, what string, wanted func(leader string, token int64) bool) time.Duration {
	t.Helper()
	began := time.Now()
	hostileUntil(t, within, func() bool { return wanted(o.now()) }, what)
	return time.Since(began)
}

func (o *oversight) pass(d time.Duration) { <-time.After(d) }
