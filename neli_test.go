package neli_test

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/scenario"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

const (
	defaultT = 5 * time.Second
	silence  = 5006 * time.Millisecond // W(T) with 500 ppm
)

func TestOneOfThreeLeads(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		t.Run(nomination.String(), func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *cluster) {
				for _, name := range []string{"a", "b", "c"} {
					c.Work(name, func(cfg *neli.Config) { cfg.Nomination = nomination })
				}
				l := c.Leader(0, 300*time.Millisecond) // nobody can have led before
				c.Gap()
				c.Pass(10 * time.Minute)
				require.Zero(c, c.Gap(), "a quiet cluster loses no term")
				require.Equal(c, []string{"acquired"}, l.Kinds())
				require.True(c, l.IsLeader())
				require.Equal(c, []int{0}, slices.Collect(l.Led()))
				for _, m := range c.Members {
					if m != l {
						require.Empty(c, m.Kinds())
						require.False(c, m.IsLeader())
						_, ok := m.Token(0)
						require.False(c, ok)
					}
				}
			})
		})
	}
}

func TestCutOffLeaderIsFencedAndReplaced(t *testing.T) {
	for _, links := range []nelitest.Link{nelitest.LinkAll, nelitest.LinkAppends, nelitest.LinkReads, nelitest.LinkAcks | nelitest.LinkReads} {
		simulate(t, nelitest.Options{}, func(c *cluster) {
			c.Work("a", open)
			c.Work("b", open)
			old := c.Leader(0, 2*silence)
			token, _ := old.Token(0)
			c.Broker.CutOff(old.As, links)
			c.Eventually(2*defaultT, "the leader is fenced", func() bool { return slices.Contains(old.Kinds(), "fenced") })
			require.False(c, old.IsLeader())
			e := old.Last().(neli.LeaderFenced)
			require.Equal(c, neli.ReasonLapsed, e.Reason)
			require.Equal(c, []int{0}, e.Roles())
			next := c.Leader(0, 2*silence)
			require.NotSame(c, old, next)
			newer, _ := next.Token(0)
			require.Greater(c, newer, token)
			c.Broker.Restore(old.As, nelitest.LinkAll)
			c.Pass(time.Minute)
			require.True(c, next.IsLeader(), "a leader that comes back disturbs nobody")
			require.Equal(c, []string{"acquired", "fenced"}, old.Kinds())
		})
	}
}

func TestAssignedCrashTakesTheSessionTimeout(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		c.Work("a", nil)
		c.Work("b", nil)
		c.Work("d", nil)
		c.Crash(c.Leader(0, 2*silence))
		c.Gap()
		c.Leader(0, 10*time.Second)
		// The dead member's last heartbeat was less than 500 ms before its end, and its session is
		// counted from there. Allow 1.5 s for a rebalance.
		const session, heartbeat, rebalance = 6 * time.Second, 500 * time.Millisecond, 1500 * time.Millisecond
		gap := c.Gap()
		require.GreaterOrEqual(c, gap, session-heartbeat)
		require.LessOrEqual(c, gap, session+rebalance)
		c.Logf("%v without a leader", gap)
	})
}

// A suspended leader wakes and finds its own beats to read. Their stamps are old, so they prove nothing.
func TestOldBeatsDoNotRenewAWokenLeader(t *testing.T) {
	for _, asleep := range []time.Duration{3 * time.Second, 6 * time.Second, time.Minute} {
		simulate(t, nelitest.Options{}, func(c *cluster) {
			c.Work("a", nil)
			c.Work("b", nil)
			old := c.Leader(0, 2*silence)
			c.Broker.Suspend(old.As)
			c.Pass(asleep)
			c.Broker.Resume(old.As)
			c.Pass(2 * silence)
			if asleep > defaultT { // it may lead again in another term
				require.Equal(c, "fenced", old.Kinds()[1])
			}
			l := c.Leader(0, 2*silence)
			switch {
			case asleep < defaultT:
				require.Same(c, old, l)
				require.Equal(c, []string{"acquired"}, old.Kinds())
			case asleep == time.Minute:
				require.NotSame(c, old, l)
			}
		})
	}
}

func TestJoinAndLeaveDisturbNobody(t *testing.T) {
	for _, assignor := range []string{"cooperative-sticky", "range"} {
		t.Run(assignor, func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *cluster) {
				with := func(cfg *neli.Config) {
					cfg.KafkaConfig = neli.KafkaConfigMap{"partition.assignment.strategy": assignor}
				}
				a := c.Work("a", with)
				require.Same(c, a, c.Leader(0, 2*silence))
				for _, name := range []string{"b", "d", "e"} {
					c.Work(name, with) // sorts after a, so that the range assignor leaves partition 0 with a
					c.Pass(10 * time.Second)
				}
				require.NoError(c, c.Members["b"].Close())
				c.Crash(c.Members["d"])
				c.Pass(time.Minute)
				require.Equal(c, []string{"acquired"}, a.Kinds())
			})
		})
	}
}

// A lost group session does not end a lease. A completed assignment without the partition does, in an orderly way.
func TestLostSessionDoesNotEndALease(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Work("a", nil)
		c.Leader(0, 2*silence)
		c.Broker.CutOff("a", nelitest.LinkGroup)
		c.Pass(time.Minute)
		require.Equal(c, []string{"acquired"}, a.Kinds())
		b := c.Work("b", nil)
		c.Pass(time.Minute) // b is nominated by now, but a holds the lease
		require.True(c, a.IsLeader())
		require.False(c, b.IsLeader())
		c.Gap()
		c.Broker.Restore("a", nelitest.LinkGroup)
		c.Eventually(10*time.Second, "b leads", b.IsLeader)
		require.Less(c, c.Gap(), 100*time.Millisecond)
		require.Equal(c, []string{"acquired", "revoked"}, a.Kinds())
		require.Equal(c, neli.ReasonUnassigned, a.Last().(neli.LeaderRevoked).Reason)
	})
}

func TestManyRoles(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(30), func(c *cluster) {
		with := func(cfg *neli.Config) { cfg.Partitions = 7 }
		a := c.Work("a", with)
		for role := range c.Roles {
			c.Leader(role, 2*silence)
		}
		require.Len(c, slices.Collect(a.Led()), 30)
		require.True(c, slices.IsSorted(slices.Collect(a.Led())))
		b := c.Work("b", with)
		c.Eventually(30*time.Second, "b has its share", func() bool { return len(slices.Collect(b.Led())) >= 12 })
		c.Pass(10 * time.Second)
		for role := range c.Roles {
			require.NotEqual(c, a.IsLeaderOf(role), b.IsLeaderOf(role), "role %d", role)
			at, aok := a.Token(role)
			same, _ := a.Token((role + 7) % 28)
			if aok && role < 21 {
				require.Equal(c, at, same, "roles of one partition share its token")
			}
		}
		require.False(c, a.IsLeaderOf(-1))
		require.False(c, a.IsLeaderOf(30))
		c.Crash(b)
		c.Eventually(30*time.Second, "a has everything", func() bool { return len(slices.Collect(a.Led())) == 30 })
	})
}

// The application learns of its leadership when it asks, and leads only from then on.
func TestLeadershipBeginsOnceItIsReported(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Join("a", open)
		ok, err := a.Pulse(0)
		require.NoError(c, err)
		require.False(c, ok)
		c.Pass(2 * silence)
		require.False(c, a.IsLeader(), "the lease is held, and nobody was told")
		require.Len(c, records(c, "app.neli", 0, "claim"), 1)
		require.Empty(c, a.Kinds())
		a.Upon(func(neli.Event) { require.True(c, a.IsLeader()) })
		ok, err = a.Pulse(0)
		require.NoError(c, err)
		require.True(c, ok)
		require.Equal(c, []string{"acquired"}, a.Kinds())
	})
}

func TestPulseReturnsExactlyAtItsTimeout(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		c.Broker.Stop()
		a := c.Join("a", open)
		for _, d := range []time.Duration{0, 10 * time.Millisecond, 3 * time.Second} {
			began := time.Now()
			ok, err := a.Pulse(d)
			require.NoError(c, err)
			require.False(c, ok)
			require.Equal(c, d, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(c.Context(), time.Second)
		defer cancel()
		ok, err := a.PulseCtx(ctx)
		require.NoError(c, err, "the end of the context is no error")
		require.False(c, ok)
		c.Broker.Start()
		began := time.Now()
		ok, err = a.Pulse(time.Minute)
		require.NoError(c, err)
		require.True(c, ok)
		// Allow for a request without an answer, and a pause, before the silence begins.
		require.Less(c, time.Since(began), silence+6*time.Second, "it returns as soon as it leads")
	})
}

// If the application hangs, the process stops beating after MaxPulseInterval and leaves the group,
// and another one takes over.
func TestHungApplicationIsReplaced(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		simulate(t, nelitest.Options{}, func(c *cluster) {
			with := func(cfg *neli.Config) { cfg.Nomination = nomination }
			a := c.Join("a", with)
			ok, err := a.Pulse(time.Minute)
			require.NoError(c, err)
			require.True(c, ok)
			b := c.Work("b", with)
			c.Pass(29 * time.Second)
			require.True(c, a.IsLeader())
			c.Eventually(2*silence+5*time.Second, "b leads", b.IsLeader)
			require.Empty(c, c.Broker.Assigned("a"))
			ok, err = a.Pulse(0)
			require.NoError(c, err)
			require.False(c, ok)
			require.Equal(c, neli.ReasonNotPulsed, a.Last().(neli.LeaderFenced).Reason)
			c.Pass(time.Minute)
			require.True(c, b.IsLeader())
		})
	}
}

// A pending Pulse counts as a sign of life, however long it lasts.
func TestPendingPulseCountsAsAlive(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a, b := c.Work("a", open), c.Join("b", open)
		c.Leader(0, 2*silence)
		require.True(c, a.IsLeader())
		got := make(chan bool)
		go func() {
			ok, _ := b.Pulse(time.Hour)
			got <- ok
		}()
		c.Pass(10 * time.Minute)
		c.Crash(a)
		require.True(c, <-got)
	})
}

// Work ends before the Release: the successor waits for the barrier, but no longer than its deadline.
func TestDrainBeforeRelease(t *testing.T) {
	for _, work := range []time.Duration{0, 3 * time.Second, 20 * time.Second} {
		simulate(t, nelitest.Options{}, func(c *cluster) {
			a := c.Work("a", open)
			c.Leader(0, 2*silence)
			b := c.Work("b", open)
			var deadline atomic.Pointer[time.Time]
			var working atomic.Bool
			a.Upon(func(e neli.Event) {
				r, ok := e.(neli.LeaderRevoked)
				if !ok {
					return
				}
				deadline.Store(&r.Deadline)
				working.Store(true)
				for end := time.Now().Add(work); time.Now().Before(end); c.Pass(time.Millisecond) {
					if time.Now().Before(r.Deadline) {
						require.True(c, a.IsLeader(), "the lease is kept alive")
						require.False(c, b.IsLeader(), "nobody else works")
					} else if time.Now().After(r.Deadline) {
						require.False(c, a.IsLeader())
					}
				}
				working.Store(false)
			})
			began := time.Now()
			go func() { _ = a.Close() }()
			c.Eventually(time.Minute, "b leads", b.IsLeader)
			require.WithinDuration(c, began.Add(10*time.Second), *deadline.Load(), 10*time.Millisecond)
			require.WithinDuration(c, began.Add(min(work, 10*time.Second)), time.Now(), 50*time.Millisecond)
			require.Equal(c, work > 10*time.Second, working.Load())
			require.NoError(c, a.Close())
			require.Equal(c, []string{"acquired", "revoked"}, a.Kinds())
		})
	}
}

func TestTopicReplaced(t *testing.T) {
	faults := map[string]struct {
		do   func(b *nelitest.Broker) error
		want error
	}{
		"deleted": {func(b *nelitest.Broker) error { return b.DeleteTopic("app.neli") }, neli.ErrTopicChanged},
		"recreated": {func(b *nelitest.Broker) error {
			return errors.Join(b.DeleteTopic("app.neli"), b.CreateTopic("app.neli", 1))
		}, neli.ErrTopicChanged},
		"more partitions": {func(b *nelitest.Broker) error { return b.AddPartitions("app.neli", 1) }, neli.ErrTopicChanged},
		"truncated":       {func(b *nelitest.Broker) error { return b.Truncate("app.neli", 0, 3) }, neli.ErrTopicChanged},
	}
	for name, f := range faults {
		for _, mode := range []neli.Mode{neli.Exclusive, neli.NonExclusive} {
			if mode == neli.NonExclusive && name == "truncated" {
				continue // nothing depends on the log's contents
			}
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				simulateWith(t, nelitest.Options{}, func(c *cluster) { c.Exclusive = mode == neli.Exclusive }, func(c *cluster) {
					a := c.Work("a", func(cfg *neli.Config) { cfg.Mode = mode })
					c.Leader(0, 2*silence)
					c.Pass(10 * time.Second)
					require.NoError(c, f.do(c.Broker))
					within := time.Minute
					if name == "deleted" { // for a deleted topic only time can tell
						within = 90 * time.Second
					}
					c.Eventually(within, "failure", func() bool { return a.State() == neli.StateFailed })
					require.ErrorIs(c, a.Await(), f.want)
					ok, err := a.Pulse(time.Second)
					require.False(c, ok)
					require.ErrorIs(c, err, f.want)
					require.False(c, a.IsLeader())
					require.Len(c, a.Kinds(), 2)
					require.NotEqual(c, "acquired", a.Kinds()[1])
					if name == "recreated" && mode == neli.Exclusive {
						// Records that were in flight when the topic was replaced cannot be
						// recalled. Nothing is sent after the replacement was noticed.
						n := len(c.Broker.Records("app.neli", 0))
						c.Pass(time.Minute)
						require.Len(c, c.Broker.Records("app.neli", 0), n)
					}
					require.NoError(c, a.Close())
				})
			})
		}
	}
}

// If the head of the log is deleted before it was read, the lease is learned anew.
func TestDeletedHeadIsNotFatal(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a, b := c.Work("a", open), c.Work("b", open)
		l := c.Leader(0, 2*silence)
		other := map[*member]*member{a: b, b: a}[l]
		c.Broker.CutOff(other.As, nelitest.LinkReads)
		c.Pass(time.Minute)
		require.NoError(c, c.Broker.DeleteHead("app.neli", 0, int64(len(c.Broker.Records("app.neli", 0))-2)))
		c.Broker.Restore(other.As, nelitest.LinkReads)
		c.Pass(time.Minute)
		require.True(c, l.IsLeader())
		require.Equal(c, neli.StateLive, other.State())
		c.Crash(l)
		c.Leader(0, silence+time.Second)
	})
}

func TestRubbishIsSkippedAndCounted(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Work("a", open)
		c.Leader(0, 2*silence)
		rubbish := []string{"", "rubbish", "[]", `{"neli":1}`, `{"neli":1,"kind":"beat","group":"app","member":"x"}`,
			`{"neli":2,"kind":"beat","group":"app"}`, `{"neli":1,"kind":"beat","group":"other","member":"x"}`}
		for range 100 {
			for _, r := range rubbish {
				_, err := c.Broker.Inject("app.neli", 0, []byte(r))
				require.NoError(c, err)
			}
		}
		c.Pass(time.Minute)
		require.Equal(c, []string{"acquired"}, a.Kinds())
		s := a.Stats()
		require.Equal(c, uint64(300), s.Malformed)
		require.Equal(c, uint64(100), s.Newer)
		require.Equal(c, uint64(300), s.Foreign)
		require.Greater(c, s.Records, uint64(750))
		// A record that claims to have read records of the future costs a term. If no other process
		// knows better, it also costs the longest possible lease.
		beats := records(c, "app.neli", 0, "beat")
		ahead := regexp.MustCompile(`"read":\d+`).ReplaceAll(beats[len(beats)-1].Value, []byte(`"read":9999999`))
		_, err := c.Broker.Inject("app.neli", 0, ahead)
		require.NoError(c, err)
		c.Eventually(time.Second, "fenced", func() bool { return len(a.Kinds()) == 2 })
		require.Equal(c, neli.ReasonLogReset, a.Last().(neli.LeaderFenced).Reason)
		c.Leader(0, 62*time.Second)
	})
}

func TestGroupsShareATopic(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		for _, g := range []string{"g", "h"} {
			for _, name := range []string{g + "1", g + "2"} {
				c.Work(name, func(cfg *neli.Config) {
					cfg.LeaderGroupID, cfg.LeaderTopic, cfg.Nomination = g, "shared", neli.NominationOpen
				})
			}
		}
		leads := func(a, b string) bool { return c.Members[a].IsLeader() != c.Members[b].IsLeader() }
		c.Eventually(2*silence, "a leader in each group", func() bool { return leads("g1", "g2") && leads("h1", "h2") })
		for range 60 {
			c.Pass(time.Second)
			require.True(c, leads("g1", "g2") && leads("h1", "h2"))
		}
	})
}

// records returns the records of a kind.
func records(c *cluster, topic string, p int, kind string) []kafka.Record {
	return slices.DeleteFunc(c.Broker.Records(topic, p), func(r kafka.Record) bool {
		return !bytes.Contains(r.Value, []byte(`"kind":"`+kind+`"`))
	})
}

// A log that loses acknowledged records breaks an assumption of the lease. But no process waits for
// ever for a lost claim.
func TestAnAcknowledgedClaimThatIsLostIsGivenUp(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		simulate(t, nelitest.Options{}, func(c *cluster) {
			a := c.Work("a", func(cfg *neli.Config) { cfg.Nomination = nomination })
			c.Leader(0, time.Minute)
			c.Pass(time.Second)
			c.Broker.CutOff("a", nelitest.LinkReads)
			require.NoError(c, a.SetRoles(2))
			c.Pass(200 * time.Millisecond)
			claims := records(c, "app.neli", 0, "claim")
			lost := claims[len(claims)-1].Offset
			require.Positive(c, lost)
			require.NoError(c, c.Broker.Truncate("app.neli", 0, lost))
			c.Broker.Restore("a", nelitest.LinkReads)
			c.Eventually(20*time.Second, "it leads the new role", func() bool { return a.IsLeaderOf(1) })
			require.True(c, a.IsLeaderOf(0))
		})
	}
}

// Shorter names for the rig of package scenario, which runs whole members in simulated time.
type (
	cluster = scenario.Cluster
	member  = scenario.Member
)

var (
	open        = scenario.Open
	roles       = scenario.Roles
	overlapping = scenario.Overlapping

	simulateWith = scenario.Simulate
)

func simulate(t *testing.T, opts nelitest.Options, test func(c *cluster)) {
	t.Helper()
	scenario.Simulate(t, opts, nil, test)
}
