package scenario

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/seeded"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// far is a group in which some members are farther from the log than the others. The round trips of
// the others take 2 ms.
type far struct {
	small     bool // three small logs instead of one
	lease     time.Duration
	near, far int
	appends   time.Duration // how much longer the far members' records take to reach the log
	reads     time.Duration // how much longer the log's records take to reach the far members
}

func (f far) String() string {
	logs := map[bool]string{true: "small logs, "}[f.small]
	return fmt.Sprintf("%sT=%v, %d near, %d far, appends +%v, reads +%v", logs, f.lease, f.near, f.far, f.appends, f.reads)
}

// short reports whether the short tests include a group.
func (f far) short() bool {
	return f.near == 1 && f.lease <= defaultT && f.appends+f.reads >= 100*time.Millisecond
}

func distances() (groups []far) {
	const ms = time.Millisecond
	for _, small := range []bool{false, true} {
		for _, f := range []far{
			{lease: defaultT, near: 1, far: 1, appends: 10 * ms, reads: 10 * ms},
			{lease: defaultT, near: 1, far: 1, appends: 40 * ms},
			{lease: defaultT, near: 1, far: 1, reads: 40 * ms},
			{lease: defaultT, near: 1, far: 1, appends: 200 * ms},
			{lease: defaultT, near: 1, far: 1, reads: 200 * ms},
			{lease: defaultT, near: 3, far: 1, appends: 40 * ms, reads: 40 * ms},
			{lease: defaultT, near: 2, far: 2, appends: 200 * ms, reads: 200 * ms},
			{lease: time.Minute, near: 2, far: 1, appends: 20 * ms, reads: 20 * ms},
			{lease: time.Minute, near: 2, far: 2, appends: 200 * ms, reads: 200 * ms},
			{lease: 500 * ms, near: 1, far: 1, appends: 20 * ms},
			{lease: 500 * ms, near: 1, far: 1, reads: 80 * ms},
			{lease: 500 * ms, near: 1, far: 1, appends: 50 * ms, reads: 50 * ms},
		} {
			f.small = small
			groups = append(groups, f)
		}
		if small {
			groups = append(groups, far{small: true, lease: 500 * ms, near: 1, far: 1, appends: 90 * ms, reads: 90 * ms})
		}
	}
	return groups
}

// run starts the near members and then the far ones, with n roles, and lets ten minutes pass.
func (f far) run(t *testing.T, n int, test func(c *Cluster, near, far []*Member)) {
	Simulate(t, nelitest.Options{AppendLatency: time.Millisecond, ReadLatency: time.Millisecond}, func(c *Cluster) {
		c.Roles, c.Period = n, time.Second
		if f.small {
			c.Logs = nelitest.NewSmallLogs(3, 2*time.Millisecond)
		}
	}, func(c *Cluster) {
		var near, far []*Member
		for i := range f.near {
			near = append(near, c.Work(fmt.Sprint("near", i), many(n, leaseOf(f.lease))))
		}
		c.Eventually(3*f.lease+time.Second, "the near members lead all", c.allLed(n))
		for i := range f.far {
			m := c.Work(fmt.Sprint("far", i), many(n, leaseOf(f.lease)))
			c.away(m.As, f.appends, f.reads)
			far = append(far, m)
		}
		c.Pass(10 * time.Minute)
		test(c, near, far)
	})
}

// away makes a member's records take longer to reach the log, and the log's records to reach the member.
func (c *Cluster) away(name string, appends, reads time.Duration) {
	if c.Logs != nil {
		c.Logs.Slow(name, appends, reads)
		return
	}
	c.Broker.Delay(name, appends)
	c.Broker.SlowReads(name, reads)
}

// Members at mixed distances all lead their shares, the balance comes to rest, and a role can be
// handed to any of them.
func TestFarMembersLeadTheirShares(t *testing.T) {
	for _, f := range distances() {
		if (testing.Short() || seeded.Race) && !f.short() { // make sim runs all of them
			continue
		}
		t.Run(f.String(), func(t *testing.T) {
			n := 2 * (f.near + f.far)
			f.run(t, n, func(c *Cluster, near, far []*Member) {
				shares := map[string]int{}
				for _, m := range append(near, far...) {
					shares[m.As] = 2
				}
				require.Equal(c, shares, c.shares(n))
				before := c.terms()
				c.Pass(5 * time.Minute)
				require.Equal(c, before, c.terms(), "terms begun in five minutes")
				c.orderly()
				at := slices.IndexFunc(near, func(m *Member) bool { return m.IsLeaderOf(0) })
				from, to := near[max(0, at)], far[0]
				if at < 0 {
					from = c.Leader(0, time.Second)
					to = near[0]
				}
				for i := range 20 {
					require.NoError(c, from.Transfer(c.atMost(time.Hour), 0, to.As), "transfer %d from %s to %s", i, from.As, to.As)
					c.Eventually(time.Second, "it is told", func() bool { return to.IsLeaderOf(0) })
					c.Pass(time.Second)
					from, to = to, from
				}
			})
		})
	}
}

// A member whose answer takes longer than Transfer waits, but less than T/4, gets its share by balance.
func TestBalanceAwaitsALateAnswer(t *testing.T) {
	f := far{lease: defaultT, near: 1, far: 1, reads: 1100 * time.Millisecond}
	f.run(t, 4, func(c *Cluster, near, far []*Member) {
		require.Equal(c, map[string]int{"near0": 2, "far0": 2}, c.shares(4))
		require.Equal(c, 6, c.terms())
	})
}

// A closing leader does not leave its role to a preferred member that is too far away: the others would
// wait T/2 for it.
func TestCloseDoesNotNameAMemberThatIsTooFar(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		short := func(cfg *neli.Config) { Open(cfg); rebalanceOff(cfg); leaseOf(500 * time.Millisecond)(cfg) }
		a := c.Work("a", short)
		c.Leader(0, 2*silence)
		d := c.Work("d", short)
		c.Work("b", func(cfg *neli.Config) { short(cfg); cfg.Priority = 10 })
		c.away("b", 100*time.Millisecond, 100*time.Millisecond)
		c.Pass(20 * time.Second)
		c.Gap()
		require.NoError(c, a.Close())
		c.Eventually(200*time.Millisecond, "d leads", d.IsLeader)
		require.LessOrEqual(c, c.Gap(), 100*time.Millisecond, "without a leader")
	})
}

// A successor that is lost before it has claimed costs little where all are near. If a far one crashes,
// nobody can know of it. So that costs the time of its answer twice, or once plus 110 ms, whichever is
// longer. If it says goodbye, the others act on that at once.
func TestLostSuccessorCostsLittle(t *testing.T) {
	const near = 100 * time.Millisecond
	for _, c := range []struct {
		far     time.Duration
		crashes bool
		limit   time.Duration
	}{
		{0, true, near}, {40 * time.Millisecond, true, 190 * time.Millisecond}, {200 * time.Millisecond, true, 440 * time.Millisecond},
		{0, false, near}, {40 * time.Millisecond, false, near}, {200 * time.Millisecond, false, 260 * time.Millisecond},
	} {
		for after := range 3 { // thirds of the way to the successor
			t.Run(fmt.Sprintf("%v away, crashes=%v, after %d thirds", c.far, c.crashes, after), func(t *testing.T) {
				loseSuccessor(t, c.far, c.far/2*time.Duration(after)/3, c.crashes, c.limit)
			})
		}
	}
}

// loseSuccessor lets a leader close whose successor is far away and is lost some time later. A third
// member must lead within limit.
func loseSuccessor(t *testing.T, far, after time.Duration, crashes bool, limit time.Duration) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		var ms []*Member
		for i, name := range []string{"a", "b", "d"} {
			ms = append(ms, c.Work(name, func(cfg *neli.Config) { Open(cfg); cfg.Priority = -i; rebalanceOff(cfg) }))
			c.Leader(0, 2*silence)
		}
		c.away("b", far/2, far/2)
		c.Pass(20 * time.Second)
		closed := make(chan error, 2)
		go func() { closed <- ms[0].Close() }()
		c.Eventually(5*time.Second, "a has released", func() bool { return !ms[0].IsLeader() })
		c.Gap()
		c.Pass(after)
		if crashes {
			c.Crash(ms[1])
			closed <- nil
		} else {
			go func() { closed <- ms[1].Close() }()
		}
		c.Eventually(limit, "d leads", ms[2].IsLeader)
		require.LessOrEqual(c, c.Gap(), limit)
		require.NoError(c, <-closed)
		require.NoError(c, <-closed)
	})
}

// A leader that closes beside one far member does not write a Snapshot without holders before that
// member has claimed.
func TestCloseWaitsForAFarSuccessor(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a := c.Work("a", Open)
		c.Leader(0, 2*silence)
		b := c.Work("b", Open)
		c.away("b", 200*time.Millisecond, 200*time.Millisecond)
		c.Pass(20 * time.Second)
		before := len(c.Records(0, lease.Snapshot))
		require.NoError(c, a.Close())
		c.Eventually(500*time.Millisecond, "b leads", b.IsLeader)
		require.Len(c, c.Records(0, lease.Snapshot), before)
	})
}

// Nothing is handed to a member whose log is stalled by its own measure, because it would not claim in
// time. No term ends for that, and a process that asks for such a hand-over gets the error at once.
func TestMemberThatIsTooFarGetsNothing(t *testing.T) {
	for _, f := range []far{
		{lease: 500 * time.Millisecond, near: 1, far: 1, reads: 130 * time.Millisecond},
		{lease: 500 * time.Millisecond, near: 1, far: 1, appends: 200 * time.Millisecond, reads: 200 * time.Millisecond},
		{lease: 2 * time.Second, near: 1, far: 1, appends: 700 * time.Millisecond},
		{small: true, lease: 500 * time.Millisecond, near: 1, far: 1, appends: 130 * time.Millisecond, reads: 130 * time.Millisecond},
	} {
		t.Run(f.String(), func(t *testing.T) {
			f.run(t, 4, func(c *Cluster, near, far []*Member) {
				require.Equal(c, map[string]int{"near0": 4}, c.shares(4))
				require.Equal(c, 4, c.terms(), "terms begun so far")
				require.ErrorIs(c, near[0].Transfer(c.atMost(f.appends+f.reads+10*time.Millisecond), 0, "far0"), neli.ErrNoAnswer)
				require.Equal(c, 4, c.terms())
			})
		})
	}
}
