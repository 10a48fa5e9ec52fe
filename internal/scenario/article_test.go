package scenario

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/nelitest"
)

// These tests play the cases of the article "Leader Election, Why Should I Care?" (Elasticsearch)
// with whole members: five machines A to E, each with a member and a log. Package quorum's
// simulation has more such cases: every way to cut five machines in two, and a machine between two
// halves.

var articleNodes = []string{"A", "B", "C", "D", "E"}

// article starts the five machines. A leads.
func article(t *testing.T, test func(c *Cluster)) {
	t.Helper()
	Simulate(t, nelitest.Options{}, onSmallLogs(5, 1), func(c *Cluster) {
		for i, name := range articleNodes {
			c.Work(name, small(priority(-i), rebalanceOff))
		}
		c.Eventually(smallElection, "A leads", func() bool { return c.leads() == c.Members["A"] })
		c.Pass(2 * smallT)
		test(c)
	})
}

// within asserts that one of the given members leads within d, and returns it.
func (c *Cluster) within(d time.Duration, names ...string) *Member {
	c.Helper()
	var m *Member
	c.Eventually(d, fmt.Sprint("one of ", names, " leads"), func() bool {
		m = c.leads()
		return m != nil && slices.Contains(names, m.As)
	})
	return m
}

// The link between A, B and C, D, E fails. A gives up its role, and one of the others leads. When
// the link is back, nothing changes.
func TestLeaderElectionArticleLinkBetweenTwoNetworksFails(t *testing.T) {
	article(t, func(c *Cluster) {
		c.machines(articleNodes, []int{0, 1}, []int{2, 3, 4})
		cut := time.Now()
		c.Eventually(smallT, "A leads no more", func() bool { return !c.Members["A"].IsLeader() })
		leader := c.within(smallTakeover-time.Since(cut)+5*smallTrip, "C", "D", "E")
		c.Pass(5 * smallT)
		require.True(c, leader.IsLeader())
		told := leader.Events()
		c.machines(articleNodes)
		c.Pass(5 * smallT)
		require.True(c, leader.IsLeader())
		require.Equal(c, told, leader.Events(), "a member that comes back takes the role")
	})
}

// The leader's cable is moved to the other switch. If it reaches a majority there before its term
// is over, it leads on without an election.
func TestLeaderElectionArticleLeaderThatMovesInTimeLeadsOn(t *testing.T) {
	article(t, func(c *Cluster) {
		c.machines(articleNodes, []int{0, 1}, []int{2, 3, 4})
		leader := c.within(2*smallT, "C", "D", "E")
		c.Pass(3 * smallT)
		i := slices.Index(articleNodes, leader.As)
		rest := slices.DeleteFunc([]int{2, 3, 4}, func(k int) bool { return k == i })
		token, _ := leader.Token(0)
		c.Gap()
		c.machines(articleNodes, []int{0, 1, i}, rest)
		c.Pass(5 * smallT)
		again, leads := leader.Token(0)
		require.True(c, leads, "does not lead on with a majority on the other side")
		require.Equal(c, token, again, "its term has changed")
		require.Zero(c, c.Gap())
	})
}

// If the leader's term is over before its machine reaches a majority again, a member of the new
// majority leads, with a larger token. The two machines that are left elect nobody.
func TestLeaderElectionArticleMachineThatMovesLateMakesAMajority(t *testing.T) {
	article(t, func(c *Cluster) {
		c.machines(articleNodes, []int{0, 1}, []int{2, 3, 4})
		leader := c.within(2*smallT, "C", "D", "E")
		c.Pass(smallT)
		i := slices.Index(articleNodes, leader.As)
		rest := slices.DeleteFunc([]int{2, 3, 4}, func(k int) bool { return k == i })
		token, _ := leader.Token(0)
		c.machines(articleNodes, []int{0, 1}, []int{i}, rest)
		c.Pass(2 * smallT)
		require.Nil(c, c.leads(), "leads without a majority")
		c.machines(articleNodes, []int{0, 1, i}, rest)
		next := c.within(smallTakeover, "A", "B", leader.As)
		later, _ := next.Token(0)
		require.Greater(c, later, token)
		c.Pass(5 * smallT)
		require.True(c, next.IsLeader())
	})
}

// A node that restarts after a crash with an empty log takes nothing from the leader.
func TestLeaderElectionArticleRestartedNodeTakesNothing(t *testing.T) {
	article(t, func(c *Cluster) {
		c.Crash(c.Members["A"])
		c.Logs.Stop(0)
		leader := c.within(smallTakeover, "B", "C", "D", "E")
		c.Pass(2 * smallT)
		told := leader.Events()
		c.Gap()
		c.Logs.Forget(0)
		c.Work("A", small(rebalanceOff))
		c.Pass(10 * smallT)
		require.Equal(c, told, leader.Events())
		require.Zero(c, c.Gap())
	})
}

// The bully algorithm's flaw: the node with the highest id crashes under the load of leading,
// comes back, and takes over again. Here the highest priority is only a preference: no member
// makes room for it until it has been up for 15 s.
func TestLeaderElectionArticleFlappingHighestIDDoesNoHarm(t *testing.T) {
	Simulate(t, nelitest.Options{}, onSmallLogs(3, 1), func(c *Cluster) {
		leader := c.Work("D", small())
		c.Eventually(smallElection, "D leads", leader.IsLeader)
		told := leader.Events()
		c.Gap()
		for range 12 {
			highest := c.Work("E", small(priority(10)))
			c.Pass(5 * smallT)
			c.Crash(highest)
			c.Pass(smallT / 2)
		}
		require.Equal(c, told, leader.Events())
		require.Zero(c, c.Gap())
	})
}

// A network card drops all inbound packets but still sends. The leader's heartbeats are heard,
// but it serves nobody. It must stop leading and be replaced. The same holds the other way round.
func TestLeaderElectionArticleLeaderCutOffInOneDirectionIsReplaced(t *testing.T) {
	for name, links := range map[string]nelitest.Link{"hears nobody": nelitest.LinkReads, "heard by nobody": nelitest.LinkAppends} {
		t.Run(name, func(t *testing.T) {
			article(t, func(c *Cluster) {
				for log := 1; log < len(articleNodes); log++ { // its own log is on the same machine
					c.Logs.CutOff("A", log, links)
				}
				c.Eventually(smallT, "A leads no more", func() bool { return !c.Members["A"].IsLeader() })
				leader := c.within(2*smallSilence, "B", "C", "D", "E")
				c.Pass(5 * smallT)
				require.True(c, leader.IsLeader())
			})
		})
	}
}

// The minimum of master-eligible nodes is N/2+1, and no setting can lower it: a member that
// reaches fewer logs never leads.
func TestLeaderElectionArticleLeaderNeedsAMajority(t *testing.T) {
	for _, n := range []int{1, 3, 5, 7} {
		for reached := range n + 1 {
			t.Run(fmt.Sprintf("%d of %d", reached, n), func(t *testing.T) {
				Simulate(t, nelitest.Options{}, onSmallLogs(n, 1), func(c *Cluster) {
					var logs []int
					for log := range reached {
						logs = append(logs, n-1-log)
					}
					c.reaches("a", n, logs...)
					m := c.Work("a", small())
					c.Pass(smallElection)
					require.Equal(c, reached >= n/2+1, m.IsLeader())
					c.Pass(5 * smallT)
					require.Equal(c, reached >= n/2+1, m.IsLeader())
				})
			})
		}
	}
}

// The doubt expressed under the gist "Leader election on top of Scuttlebutt": two candidates cannot
// reach each other, but both reach all other members. The logs of those members have one order, so
// one of the two leads and stays leader. The sampler checks that there are never two leaders.
func TestScuttlebuttElectionGistTwoCandidatesThatDoNotSeeEachOther(t *testing.T) {
	Simulate(t, nelitest.Options{}, onSmallLogs(5, 1), func(c *Cluster) {
		c.reaches("A", 5, 0, 2, 3, 4)
		c.reaches("B", 5, 1, 2, 3, 4)
		for _, name := range []string{"A", "B"} {
			c.Work(name, small(rebalanceOff))
		}
		leader := c.Leader(0, smallElection+30*smallTrip)
		c.Pass(10 * smallT)
		require.True(c, leader.IsLeader())
		require.Equal(c, 1, c.terms())
		c.Crash(leader)
		c.Leader(0, smallTakeover)
	})
}
