package neli_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/scenario"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// A closing holder leads on until its successor is ready. With Assigned nomination that is when the
// nominated successor has announced itself. The gap is then a round trip, not a rebalance.
func TestCloseWaitsForTheSuccessor(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		t.Run(nomination.String(), func(t *testing.T) {
			simulate(t, nelitest.Options{RebalanceTime: 300 * time.Millisecond}, func(c *cluster) {
				with := func(cfg *neli.Config) { cfg.Nomination = nomination }
				a := c.Work("a", with)
				require.Same(c, a, c.Leader(0, 2*silence))
				b := c.Work("b", with)
				c.Pass(time.Minute)
				c.Gap()
				began := time.Now()
				require.NoError(c, a.Close())
				require.Less(c, time.Since(began), 2*time.Second)
				c.Eventually(time.Second, "b leads", b.IsLeader)
				require.Less(c, c.Gap(), 20*time.Millisecond)
				require.Equal(c, neli.StateClosed, a.State())
				require.NoError(c, a.Await())
			})
		})
	}
}

// A rebalance that moves one of two partitions ends only the term of its role.
func TestRebalanceRevokesOnlyTheRoleThatMoves(t *testing.T) {
	simulate(t, nelitest.Options{RebalanceTime: 300 * time.Millisecond}, func(c *cluster) {
		with := func(cfg *neli.Config) { cfg.Partitions, cfg.Roles = 2, 2 }
		a := c.Work("a", with)
		c.Leader(0, 2*silence)
		c.Pass(10 * time.Second)
		b := c.Work("b", with)
		moved := 0
		c.Eventually(30*time.Second, "b has one", func() bool {
			if b.IsLeaderOf(1) {
				moved = 1
			}
			return b.IsLeader()
		})
		e := a.Last().(neli.LeaderRevoked)
		require.Equal(c, []int{moved}, e.Partitions())
		require.Equal(c, neli.ReasonUnassigned, e.Reason)
		require.True(c, a.IsLeaderOf(1-moved))
	})
}

// The only member closes without waiting for a successor.
func TestLastMemberClosesAtOnce(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a, b := c.Work("a", nil), c.Work("b", nil)
		c.Leader(0, 2*silence)
		c.Pass(time.Minute)
		require.NoError(c, b.Close())
		c.Pass(time.Second)
		began := time.Now()
		require.NoError(c, a.Close())
		require.Less(c, time.Since(began), 500*time.Millisecond)
	})
}

// If no pulse loop is running, Close delivers the events itself.
func TestCloseDeliversEvents(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Join("a", nil)
		ok, err := a.Pulse(2 * silence)
		require.NoError(c, err)
		require.True(c, ok)
		require.NoError(c, a.Close())
		require.Equal(c, []string{"acquired", "revoked"}, a.Kinds())
		require.Equal(c, neli.ReasonClosing, a.Last().(neli.LeaderRevoked).Reason)
		require.Len(c, records(c, "app.neli", 0, "release"), 1)
		require.NoError(c, a.Close())
	})
}

// A claim that was in flight when Close was called is released when it has come back. Otherwise the
// others would wait for a process that no longer exists.
func TestCloseReleasesAClaimInFlight(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		c.Aged(1)
		a := c.Join("a", open)
		ok, err := a.Pulse(0)
		require.NoError(c, err)
		require.False(c, ok)
		c.Broker.Delay("a", time.Second)
		c.Pass(silence + 200*time.Millisecond)
		require.Empty(c, records(c, "app.neli", 0, "claim"))
		require.NoError(c, a.Close())
		require.Len(c, records(c, "app.neli", 0, "claim"), 1)
		require.Len(c, records(c, "app.neli", 0, "release"), 1)
		require.Empty(c, a.Kinds())
	})
}

func TestCloseIsBoundedWithoutABroker(t *testing.T) {
	type when struct {
		name string
		wait time.Duration
	}
	for _, mode := range []neli.Config{{}, {Nomination: neli.NominationOpen}, {Mode: neli.NonExclusive}} {
		for _, w := range []when{{"before anything", 0}, {"as leader", 3 * silence}} {
			simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
				a := c.Join("a", func(cfg *neli.Config) { cfg.Mode, cfg.Nomination = mode.Mode, mode.Nomination })
				_, err := a.Pulse(w.wait)
				require.NoError(c, err)
				c.Broker.CutOff("a", nelitest.LinkAll)
				began := time.Now()
				require.NoError(c, a.Close())
				require.Less(c, time.Since(began), 12*time.Second, "%s %s", mode.Mode, w.name)
				require.Equal(c, neli.StateClosed, a.State())
				require.False(c, a.IsLeader())
			})
		}
	}
}

func TestCloseTwiceAtOnce(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Work("a", open)
		c.Leader(0, 2*silence)
		results := make(chan error, 3)
		for range 3 {
			go func() { results <- a.Close() }()
		}
		for range 3 {
			require.NoError(c, <-results)
		}
		require.Equal(c, []string{"acquired", "revoked"}, a.Kinds())
	})
}

// hangs lets a member lead with a function that hangs until the first channel is closed. The second one gets what Lead returns.
func hangs(c *cluster, m *scenario.Member) (hang chan struct{}, ended chan error) {
	hang, ended = make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- m.Lead(c.Context(), func(context.Context, neli.Leadership) error {
			<-hang
			return nil
		})
	}()
	return hang, ended
}

// A function that hangs delays Close by no more than DrainTimeout, the wait for a successor and 16 s. T does not
// matter. Operators set the time limits of their service managers by this.
func TestCloseIsBoundedDespiteAHungFunction(t *testing.T) {
	for nomination, wait := range map[neli.Nomination]time.Duration{neli.NominationOpen: 12 * time.Second, neli.NominationAssigned: 4 * time.Second} {
		simulate(t, nelitest.Options{}, func(c *cluster) {
			a := c.Join("a", func(cfg *neli.Config) { cfg.Nomination, cfg.HeartbeatTimeout = nomination, time.Minute })
			hang, ended := hangs(c, a)
			c.Leader(0, 2*time.Minute)
			began := time.Now()
			err := a.Close()
			took := time.Since(began)
			close(hang)
			require.ErrorContains(c, err, "the function of Lead")
			require.LessOrEqual(c, took, 10*time.Second+wait+16*time.Second, "%s", nomination)
			require.ErrorIs(c, <-ended, neli.ErrClosed)
		})
	}
}

// Close has no limit for a barrier that it runs itself. Once that has returned and nothing is left, Close returns nil,
// however late it is.
func TestCloseWaitsForItsOwnBarrierWithoutLimit(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		for range 20 { // several times, because select takes either of two ready channels
			a := c.Join("a", open)
			a.Upon(func(e neli.Event) {
				if _, ok := e.(neli.LeaderRevoked); ok {
					c.Pass(time.Minute)
				}
			})
			ok, err := a.Pulse(time.Minute)
			require.NoError(c, err)
			require.True(c, ok)
			require.NoError(c, a.Close())
			require.Equal(c, neli.StateClosed, a.State())
		}
	})
}

// Announcements that a process made before it crashed do not count: the group has since given its
// partitions to others.
func TestCloseIgnoresAnnouncementsOfCrashedMembers(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		b := c.Work("b", nil)
		require.Same(c, b, c.Leader(0, 2*silence))
		a := c.Work("a", nil)
		c.Pass(time.Second)
		c.Crash(b)
		c.Eventually(10*time.Second, "a leads", a.IsLeader)
		d := c.Work("d", nil)
		c.Pass(time.Second)
		require.True(c, c.Broker.Assign("a"))
		c.Gap()
		c.Pass(time.Second)
		require.True(c, a.IsLeader(), "nobody has said that it is nominated")
		require.True(c, c.Broker.Assign("d", 0))
		c.Eventually(time.Second, "d leads", d.IsLeader)
		require.Less(c, c.Gap(), 20*time.Millisecond)
	})
}

// Once the barrier has returned from LeaderRevoked, the task of Background is not called again in
// that term, and the Release is sent after its last call has ended. So two members never work at
// the same time.
func TestTaskEndsBeforeTheSuccessorLeads(t *testing.T) {
	type term struct {
		partition int
		token     int64
	}
	simulateWith(t, nelitest.Options{Jitter: 3 * time.Millisecond}, roles(2), func(c *cluster) {
		with := func(cfg *neli.Config) { cfg.Partitions = 2 }
		over := map[term]bool{} // terms of any member that have ended; the log shows which were released
		var mu sync.Mutex
		released := func(at term) bool {
			return slices.ContainsFunc(records(c, "app.neli", at.partition, "release"), func(r kafka.Record) bool {
				return strings.Contains(string(r.Value), fmt.Sprintf(`"token":%d,`, at.token))
			})
		}
		tasks := map[string]int{}
		start := func(name string) *member {
			m := c.Join(name, with)
			m.Upon(func(e neli.Event) {
				r, ok := e.(neli.LeaderRevoked)
				if !ok {
					return
				}
				c.Pass(7 * time.Millisecond) // while the application finishes
				mu.Lock()
				defer mu.Unlock()
				for _, led := range r.Terms {
					at := term{led.Partition, led.Token}
					over[at] = true
					if released(at) {
						c.Errorf("%s: %v was released before the barrier has returned", name, at)
					}
				}
			})
			_, err := m.Background(func() {
				m.Enter()
				defer m.Leave()
				var begun []term
				for role := range m.Led() {
					if token, ok := m.Token(role); ok {
						begun = append(begun, term{role, token})
					}
				}
				c.Pass(5 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				tasks[name]++
				for _, at := range begun {
					if over[at] {
						c.Errorf("%v: %s: the task was called in %v after the barrier had returned", time.Since(c.Began), name, at)
					}
					if released(at) {
						c.Errorf("%v: %s: %v was released while the task was at work", time.Since(c.Began), name, at)
					}
				}
			})
			require.NoError(c, err)
			return m
		}
		a, b := start("a"), start("b")
		c.Leader(0, 2*silence)
		c.Leader(1, 2*silence)
		c.Pass(silence) // the group no longer rebalances by itself
		for i := range 40 {
			from, to := a, b
			if i%2 == 1 {
				from, to = b, a
			}
			// All roles at once, or one after the other.
			if i%4 < 2 {
				require.True(c, c.Broker.Assign(from.As, 1))
				c.Pass(time.Duration(i) * time.Millisecond)
			}
			require.True(c, c.Broker.Assign(from.As))
			require.True(c, c.Broker.Assign(to.As, 0, 1))
			c.Eventually(10*time.Second, to.As+" has both", func() bool { return to.IsLeaderOf(0) && to.IsLeaderOf(1) })
			c.Pass(200 * time.Millisecond)
		}
		mu.Lock()
		defer mu.Unlock()
		require.Greater(c, len(over), 70, "it was handed over each time")
		require.Positive(c, min(tasks["a"], tasks["b"]))
		require.NotContains(c, append(a.Kinds(), b.Kinds()...), "fenced")
	})
}
