package nelitest_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/drive"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// inGroup runs f in a bubble with a topic "c" of that many partitions.
func inGroup(t *testing.T, partitions int, f func(t *testing.T, b *nelitest.Broker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		require.NoError(t, b.CreateTopic("c", partitions))
		f(t, b)
	})
}

// join makes the named member join, and waits until the group has settled.
func join(t *testing.T, b *nelitest.Broker, member string, props ...string) *drive.Member {
	t.Helper()
	m := drive.Track(t, newMember(t, b.Provider(member), props...), "c", false)
	time.Sleep(5100 * time.Millisecond) // not at the instant of a heartbeat
	return m
}

func TestCooperativeJoinDisturbsNobody(t *testing.T) {
	inGroup(t, 2, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a")
		y := join(t, b, "b")
		z := join(t, b, "c")
		require.Equal(t, []string{"0s assigned [0 1]", "5.5s assigned [0]"}, x.History())
		require.Equal(t, []string{"400ms assigned []", "500ms assigned [1]"}, y.History())
		require.Equal(t, []string{"400ms assigned []"}, z.History())
	})
}

func TestRangeReassignsEverything(t *testing.T) {
	inGroup(t, 2, func(t *testing.T, b *nelitest.Broker) {
		eager := []string{"partition.assignment.strategy", "range"}
		x := join(t, b, "a", eager...)
		y := join(t, b, "b", eager...)
		z := join(t, b, "c", eager...)
		require.Equal(t, []string{"0s assigned [0 1]", "5.5s assigned [0]", "10.6s assigned [0]"}, x.History())
		require.Equal(t, []string{"400ms assigned [1]", "5.5s assigned [1]"}, y.History())
		require.Equal(t, []string{"400ms assigned []"}, z.History())
	})
}

// librdkafka's own default is range,roundrobin.
func TestGroupUsesAStrategyThatAllHave(t *testing.T) {
	inGroup(t, 4, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a", "partition.assignment.strategy", "range, roundrobin")
		y := join(t, b, "b", "partition.assignment.strategy", "roundrobin")
		require.Equal(t, []int{0, 2}, x.Assigned())
		require.Equal(t, []int{1, 3}, y.Assigned())

		z := join(t, b, "c", "partition.assignment.strategy", "range")
		require.ErrorContains(t, z.Errors()[0], "partition.assignment.strategy")
		require.Empty(t, z.Assigned())
	})
}

func TestInitialRebalanceDelayGathersMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{InitialRebalanceDelay: 3 * time.Second, RebalanceTime: time.Second})
		require.NoError(t, b.CreateTopic("c", 2))
		x := drive.Track(t, newMember(t, b.Provider("a")), "c", false)
		y := drive.Track(t, newMember(t, b.Provider("b")), "c", false)
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"3s assigned [0]"}, x.History())
		require.Equal(t, []string{"3s assigned [1]"}, y.History())
	})
}

func TestExpire(t *testing.T) {
	inGroup(t, 1, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a")
		y := join(t, b, "b")
		require.True(t, b.Expire("a"))
		require.False(t, b.Expire("nobody"))
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"0s assigned [0]", "10.5s lost"}, x.History()[:2])
		require.Len(t, slices.Concat(x.Assigned(), y.Assigned()), 1)
	})
}

func TestGroupCutOff(t *testing.T) {
	inGroup(t, 1, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a")
		y := join(t, b, "b")
		b.CutOff("a", nelitest.LinkGroup)
		time.Sleep(8 * time.Second)
		require.Contains(t, x.History(), "16s lost") // a session after its last heartbeat
		require.Equal(t, []int{0}, y.Assigned())
		b.Restore("a", nelitest.LinkAll)
		time.Sleep(2 * time.Second)
		require.Equal(t, "18.6s assigned []", x.History()[2])
	})
}

func TestCutOffDuringARejoinGoesUnnoticed(t *testing.T) {
	inGroup(t, 2, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a")
		y := drive.Track(t, newMember(t, b.Provider("b")), "c", false)
		synctest.Wait()
		for len(y.History()) == 0 { // until a has learnt of the rebalance and answered
			time.Sleep(time.Millisecond)
			if len(x.History()) == 2 {
				b.CutOff("a", nelitest.LinkGroup)
				break
			}
		}
		time.Sleep(30 * time.Second)
		require.Equal(t, []int{0, 1}, y.Assigned())
		require.Equal(t, []int{0}, x.Assigned())
		b.Restore("a", nelitest.LinkGroup)
		time.Sleep(5 * time.Second)
		require.Equal(t, "lost", x.History()[2][len(x.History()[2])-4:])
		require.Equal(t, []int{0}, y.Assigned())
		require.Equal(t, []int{1}, x.Assigned())
	})
}

func TestSuspendedMemberIsReplaced(t *testing.T) {
	inGroup(t, 1, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a")
		y := join(t, b, "b")
		b.Suspend("a")
		time.Sleep(time.Minute)
		require.Equal(t, []int{0}, x.Assigned())
		require.Equal(t, []int{0}, y.Assigned())
		b.Resume("a")
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"0s assigned [0]", "1m10.2s lost", "1m10.6s assigned []"}, x.History())
	})
}

func TestKilledMemberIsReplaced(t *testing.T) {
	inGroup(t, 1, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a")
		y := join(t, b, "b")
		b.Kill("a")
		time.Sleep(5 * time.Second)
		require.Empty(t, y.Assigned())
		time.Sleep(2 * time.Second)
		require.Equal(t, []int{0}, y.Assigned())
		require.ErrorIs(t, x.Errors()[0], kafka.ErrClientFatal)
		z := join(t, b, "a")
		require.Equal(t, []string{"400ms assigned []"}, z.History())
	})
}

func TestForcedAssignments(t *testing.T) {
	inGroup(t, 2, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a")
		y := join(t, b, "b")
		require.True(t, b.Assign("b", 0, 1))
		time.Sleep(time.Second)
		require.Equal(t, []int{0}, x.Assigned())
		require.Equal(t, []int{0, 1}, y.Assigned())
		require.True(t, b.Revoke("b", 0, 1))
		require.True(t, b.Assign("a"))
		time.Sleep(time.Minute)
		require.Empty(t, x.Assigned())
		require.Empty(t, y.Assigned())
		require.False(t, b.Assign("nobody", 1))
		require.True(t, b.Assign("a", 0, 1))
		require.True(t, b.Assign("b", 0, 1))
		b.CutOff("b", nelitest.LinkGroup)
		time.Sleep(time.Second)
		require.Equal(t, []int{0, 1}, x.Assigned())
		require.Empty(t, y.Assigned())
		b.Restore("b", nelitest.LinkGroup)
		time.Sleep(time.Second)
		require.Equal(t, []int{0, 1}, y.Assigned())
		b.Rebalance()
		time.Sleep(5 * time.Second)
		require.Len(t, x.Assigned(), 1)
		require.Len(t, y.Assigned(), 1)
		require.NotEqual(t, x.Assigned(), y.Assigned())
	})
}

func TestAMemberThatDoesNotPollLeaves(t *testing.T) {
	inGroup(t, 1, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a", "max.poll.interval.ms", "10000")
		y := join(t, b, "b")
		x.Stop()
		time.Sleep(12 * time.Second)
		require.Equal(t, []int{0}, y.Assigned())
		ev, err := x.Client.Poll(0)
		require.NoError(t, err)
		require.Equal(t, kafka.GroupLost, ev.Kind)
	})
}

func TestAMemberThatDoesNotAnswerIsLeftOut(t *testing.T) {
	inGroup(t, 2, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a", "max.poll.interval.ms", "20000")
		x.Stop() // heartbeats continue
		y := join(t, b, "b", "max.poll.interval.ms", "20000")
		require.Empty(t, y.History())
		time.Sleep(20 * time.Second)
		require.Equal(t, []int{0, 1}, y.Assigned())
	})
}

func TestStaticMember(t *testing.T) {
	inGroup(t, 2, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a", "group.instance.id", "i")
		y := join(t, b, "b")
		had := x.Assigned()
		require.Len(t, had, 1)
		z := join(t, b, "a", "group.instance.id", "i")
		require.Equal(t, had, z.Assigned())
		require.Len(t, x.Errors(), 1)
		require.ErrorIs(t, x.Errors()[0], kafka.ErrInstanceFenced)
		require.ErrorIs(t, x.Client.Join("c", false), kafka.ErrInstanceFenced)
		require.Len(t, y.History(), 2) // undisturbed

		z.Stop()
		require.NoError(t, z.Client.Leave()) // has no effect until the session times out
		time.Sleep(5 * time.Second)
		require.Len(t, y.Assigned(), 1)
		time.Sleep(5 * time.Second)
		require.Equal(t, []int{0, 1}, y.Assigned())
	})
}

func TestGroupsSurviveARestart(t *testing.T) {
	inGroup(t, 2, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a")
		y := join(t, b, "b")
		b.Stop()
		time.Sleep(4 * time.Second)
		b.Start()
		time.Sleep(10 * time.Second)
		require.Len(t, x.Errors(), 1)
		require.Equal(t, []string{"0s assigned [0 1]", "5.5s assigned [0]"}, x.History())
		require.Len(t, y.History(), 2)
	})
}

func TestRefusedMember(t *testing.T) {
	inGroup(t, 1, func(t *testing.T, b *nelitest.Broker) {
		x := join(t, b, "a")
		b.Refuse("a", nelitest.LinkGroup, kafka.ErrAuthorization)
		time.Sleep(10 * time.Second)
		require.Len(t, x.Errors(), 1)
		require.ErrorIs(t, x.Errors()[0], kafka.ErrAuthorization)
		require.Contains(t, x.History()[1], "lost")
		b.Refuse("a", nelitest.LinkGroup, nil)
		time.Sleep(time.Second)
		require.Equal(t, []int{0}, x.Assigned())
	})
}

func TestGroupsFollowTheirTopic(t *testing.T) {
	inGroup(t, 1, func(t *testing.T, b *nelitest.Broker) {
		x := drive.Track(t, newMember(t, b.Provider("a")), "later", false)
		time.Sleep(time.Second)
		require.ErrorIs(t, x.Errors()[0], kafka.ErrUnknownTopic)
		require.NoError(t, b.CreateTopic("later", 2))
		time.Sleep(time.Second)
		require.Equal(t, []int{0, 1}, x.Assigned())
		require.NoError(t, b.AddPartitions("later", 1))
		time.Sleep(time.Second)
		require.Equal(t, []int{0, 1, 2}, x.Assigned())
		require.NoError(t, b.DeleteTopic("later"))
		time.Sleep(time.Second)
		require.Empty(t, x.Assigned())
	})
}

func TestRecordsOfRevokedPartitionsAreDropped(t *testing.T) {
	inGroup(t, 2, func(t *testing.T, b *nelitest.Broker) {
		g := newMember(t, b.Provider("a"))
		require.NoError(t, g.Join("c", true))
		ev, err := g.Poll(time.Second)
		require.NoError(t, err)
		require.Equal(t, []int{0, 1}, ev.Partitions)
		for p := range 2 {
			_, err = b.Inject("c", p, nil)
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		b.Revoke("a", 0)
		time.Sleep(time.Second)
		ev, err = g.Poll(time.Second)
		require.NoError(t, err)
		require.Equal(t, []int{1}, ev.Partitions)
		ev, err = g.Poll(time.Second)
		require.NoError(t, err)
		require.Equal(t, kafka.GroupRecord, ev.Kind)
		require.Equal(t, 1, ev.Record.Partition)
		ev, err = g.Poll(time.Second)
		require.NoError(t, err)
		require.Equal(t, kafka.GroupIdle, ev.Kind)
	})
}

// When the faults are over, each partition belongs to one member, and every member knows what the
// coordinator has assigned.
func TestGroupsSettle(t *testing.T) {
	for seed := range uint64(40) {
		inGroup(t, 5, func(t *testing.T, b *nelitest.Broker) { settleAfterChaos(t, b, seed) })
	}
}

func settleAfterChaos(t *testing.T, b *nelitest.Broker, seed uint64) {
	names := []string{"a", "b", "c", "d"}
	strategy := []string{"cooperative-sticky", "range", "roundrobin"}[seed%3]
	members := map[string]*drive.Member{}
	for _, n := range names {
		members[n] = drive.Track(t, newMember(t, b.Provider(n), "partition.assignment.strategy", strategy), "c", false)
	}
	rng := newRand(seed)
	for range 60 {
		n := names[rng.IntN(len(names))]
		switch rng.IntN(9) {
		case 0:
			b.CutOff(n, nelitest.LinkGroup)
		case 1, 2:
			b.Restore(n, nelitest.LinkAll)
		case 3:
			b.Suspend(n)
		case 4, 5:
			b.Resume(n)
		case 6:
			b.Expire(n)
		case 7:
			b.Assign(n, rng.IntN(5))
		case 8:
			b.Stop()
			time.Sleep(time.Duration(rng.IntN(10000)) * time.Millisecond)
			b.Start()
		}
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
	}
	for _, n := range names {
		b.Restore(n, nelitest.LinkAll)
		b.Resume(n)
	}
	b.Rebalance() // forced assignments end
	time.Sleep(30 * time.Second)
	var all []int
	for _, n := range names {
		have := members[n].Assigned()
		require.Equal(t, append([]int{}, b.Assigned(n)...), append([]int{}, have...), "seed %d, member %s", seed, n)
		all = append(all, have...)
	}
	slices.Sort(all)
	require.Equal(t, []int{0, 1, 2, 3, 4}, all, "seed %d", seed)
}
