package neli_test

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// buried is a group with a sentinel. The test supplies the proof of a member's death.
type buried struct {
	*testing.T
	cfg     neli.Config
	hub     *sentinel.Hub
	members map[string]*neli.Neli
	stops   map[string]func()
	kill    func(member string)
	of      func(member string) kafka.Provider
	gone    sync.WaitGroup // waits for what remains of killed members
}

const sentinelT = 20 * time.Second

// sentinelGroup runs a test with a sentinel beside a group, in a bubble.
func sentinelGroup(t *testing.T, cfg neli.Config, of func(string) kafka.Provider, kill func(string), test func(g *buried)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	g := &buried{T: t, cfg: cfg, members: map[string]*neli.Neli{}, stops: map[string]func(){}, kill: kill, of: of}
	g.cfg.HeartbeatTimeout, g.cfg.LeaderGroupID, g.cfg.Sentinel = sentinelT, cmp.Or(cfg.LeaderGroupID, "g"), "/nowhere/at/all"
	g.hub = neli.SentinelHub(ctx, neli.Config{Sentinel: "none", Name: "sentinel", Provider: of("sentinel"), Logger: slog.New(slog.DiscardHandler)})
	test(g)
	for id := range g.members {
		g.stops[id]()
		require.NoError(t, g.members[id].Close())
	}
	stop()
	g.hub.Wait()
	g.gone.Wait()
}

// join starts a member, and registers it with a proof that the test invents.
func (g *buried) join(name string) {
	g.Helper()
	cfg := g.cfg
	cfg.Name, cfg.Provider = name, g.of(name)
	n, err := neli.New(cfg)
	require.NoError(g, err)
	p, err := n.Background(func() { time.Sleep(10 * time.Millisecond) })
	require.NoError(g, err)
	g.members[name] = n
	g.stops[name] = func() { p.Close(); _ = p.Await() }
	a, _ := g.hub.Register(neli.RegistrationOf(n, ""), sentinel.Proof{Files: 1, Pidfd: true}, &sentinel.Teller{Tell: func(sentinel.Answer) {}})
	require.NotEqual(g, sentinel.Refused, a.State, a.Reason)
}

// leader waits until somebody leads all roles, and returns the leader of the first one.
func (g *buried) leader() string {
	g.Helper()
	for range 1_000_000 {
		who, all := "", 0
		for name, n := range g.members {
			for role := range n.Led() {
				all++
				if role == 0 {
					who = name
				}
			}
		}
		if all == max(1, g.cfg.Roles) {
			return who
		}
		time.Sleep(time.Millisecond)
	}
	g.Fatal("nobody leads")
	return ""
}

// dies kills a member as SIGKILL does. If proven, the kernel reports that to the sentinel.
func (g *buried) dies(name string, proven bool) {
	g.kill(name)
	n := g.members[name]
	delete(g.members, name)
	if proven {
		g.hub.Fired(neli.RegistrationOf(n, "").Process, 0)
	}
	g.gone.Go(func() { g.stops[name](); _ = n.Close() })
}

// take waits for the next leader, and returns for how long there was none.
func (g *buried) take() time.Duration {
	g.Helper()
	began := time.Now()
	g.leader()
	return time.Since(began)
}

func kafkaGroup(t *testing.T, cfg neli.Config, test func(g *buried)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{Seed: 1, Racks: []string{"x", "y", "z"}})
		defer b.Close()
		sentinelGroup(t, cfg, b.Provider, b.Kill, test)
	})
}

func TestADeadMemberIsSucceededWithinRoundTrips(t *testing.T) {
	for name, cfg := range map[string]neli.Config{"one log": {}, "many roles on four": {Roles: 100, Partitions: 4}, "a majority of logs": {Logs: 3}} {
		t.Run(name, func(t *testing.T) {
			kafkaGroup(t, cfg, func(g *buried) {
				for _, m := range []string{"a", "b", "c"} {
					g.join(m)
				}
				g.leader()
				time.Sleep(3 * sentinelT)
				g.dies(g.leader(), true)
				took := g.take()
				g.Logf("without a leader for %v", took)
				require.Less(g, took, sentinelT/20, "others lead within round trips")
				time.Sleep(2 * sentinelT)
				g.leader()
			})
		})
	}
}

func TestUnprovenDeathCostsT(t *testing.T) {
	kafkaGroup(t, neli.Config{}, func(g *buried) {
		for _, m := range []string{"a", "b"} {
			g.join(m)
		}
		g.leader()
		time.Sleep(3 * sentinelT)
		g.dies(g.leader(), false)
		require.Greater(g, g.take(), sentinelT*3/4, "its lease has to run out")
	})
}

// A task may kill every process that runs it. It must not kill one member after the other within round trips.
func TestRoleThatKillsItsLeadersCostsTEachTime(t *testing.T) {
	kafkaGroup(t, neli.Config{}, func(g *buried) {
		for _, m := range []string{"a", "b", "c", "d"} {
			g.join(m)
		}
		g.leader()
		time.Sleep(sentinelT * 2)
		began := time.Now()
		for range 3 {
			g.dies(g.leader(), true)
			g.take()
		}
		require.Greater(g, time.Since(began), sentinelT*3/2, "no term is released before it is T old")
	})
}

// A supervisor restarts the only member of a group. The new process leads within round trips.
func TestALoneMemberThatIsRestartedLeadsWithinRoundTrips(t *testing.T) {
	kafkaGroup(t, neli.Config{}, func(g *buried) {
		g.join("a")
		g.leader()
		time.Sleep(3 * sentinelT)
		g.dies("a", true)
		time.Sleep(time.Second)
		g.join("a2")
		took := g.take()
		g.Logf("leads after %v", took)
		require.Less(g, took, sentinelT/5)
	})
}

// A sentinel of another cluster may find a topic with the same name. Members are told that it is not theirs.
func TestASentinelOfAnotherClusterRefuses(t *testing.T) {
	for name, cfg := range map[string]neli.Config{"one log": {}, "a majority of logs": {Logs: 3}} {
		for topic, want := range map[string]sentinel.State{"": sentinel.Watching, "of-another-cluster": sentinel.Refused} {
			t.Run(name+" "+topic, func(t *testing.T) {
				kafkaGroup(t, cfg, func(g *buried) {
					g.join("a")
					g.leader()
					said := make(chan sentinel.Answer, 100)
					reg := neli.RegistrationOf(g.members["a"], topic)
					reg.Number = 1 // join has registered it already
					first, _ := g.hub.Register(reg, sentinel.Proof{Files: 1, Pidfd: true}, &sentinel.Teller{Tell: func(a sentinel.Answer) { said <- a }})
					for first.State == sentinel.Registered {
						first = <-said
					}
					require.Equal(g, want, first.State, first.Reason)
					if want == sentinel.Refused {
						require.Contains(g, first.Reason, "another cluster")
					}
				})
			})
		}
	}
}

func TestADeadMemberOnSmallLogsIsSucceededWithinRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := nelitest.NewSmallLogs(3, 10*time.Millisecond)
		sentinelGroup(t, neli.Config{Roles: 10}, logs.Provider, logs.Kill, func(g *buried) {
			for _, m := range []string{"a", "b", "c"} {
				g.join(m)
			}
			g.leader()
			time.Sleep(3 * sentinelT)
			g.dies(g.leader(), true)
			took := g.take()
			g.Logf("without a leader for %v", took)
			require.Less(g, took, sentinelT/20)
		})
	})
}

// The sentinel opens the logs of each group that a member may have, whatever characters its names contain.
func TestASentinelTakesAllNamesThatMembersMayHave(t *testing.T) {
	watched := func(g *buried) {
		g.join("a")
		g.leader()
		said := make(chan sentinel.Answer, 100)
		reg := neli.RegistrationOf(g.members["a"], "")
		reg.Number = 1 // join has registered it already
		a, _ := g.hub.Register(reg, sentinel.Proof{Files: 1, Pidfd: true}, &sentinel.Teller{Tell: func(a sentinel.Answer) { said <- a }})
		for a.State == sentinel.Registered {
			a = <-said
		}
		require.Equal(g, sentinel.Watching, a.State, a.Reason)
	}
	t.Run("a topic whose name is long when it is complete", func(t *testing.T) {
		kafkaGroup(t, neli.Config{Logs: 3, LeaderTopic: strings.Repeat("t", 220)}, watched)
	})
	t.Run("a group without a topic, whose name is no topic's", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			logs := nelitest.NewSmallLogs(3, 10*time.Millisecond)
			sentinelGroup(t, neli.Config{LeaderGroupID: "orders/eu", LeaderTopic: "none"}, logs.Provider, logs.Kill, watched)
		})
	})
}

func TestBadSentinelSettingsAreRefused(t *testing.T) {
	_, err := neli.New(neli.Config{Mode: neli.NonExclusive, Sentinel: "/s", LeaderGroupID: "g", Provider: nelitest.NewBroker(nelitest.Options{}).Provider("a")})
	require.ErrorContains(t, err, "Sentinel")
	require.ErrorContains(t, err, "Exclusive")
	require.ErrorContains(t, neli.RunSentinel(t.Context(), neli.Config{}), "Sentinel")
	require.ErrorContains(t, neli.RunSentinel(t.Context(), neli.Config{Sentinel: "/s"}, "["), "allow")
	bad := neli.Config{Sentinel: "/s", KafkaConfig: neli.KafkaConfigMap{"group.id": "x"}}
	require.ErrorContains(t, neli.RunSentinel(t.Context(), bad), "KafkaConfig")
}

func TestSentinelPathIsChecked(t *testing.T) {
	b := nelitest.NewBroker(nelitest.Options{})
	defer b.Close()
	for path, want := range map[string]string{
		"/run/" + strings.Repeat("x", 10_000): "at most 107 bytes",
		"@neli":                               "no @ at the beginning",
		"/run/neli\x00":                       "no zero byte",
	} {
		cfg := neli.Config{LeaderGroupID: "g", Provider: b.Provider("a"), Sentinel: path}
		_, err := neli.New(cfg)
		require.ErrorContains(t, err, "Sentinel: ")
		require.ErrorContains(t, err, want)
		require.Less(t, len(err.Error()), 500, "not the whole path")
		require.ErrorContains(t, neli.RunSentinel(t.Context(), cfg), want)
		if !strings.ContainsRune(path, 0) { // an environment variable cannot contain it
			t.Setenv("NELI_SENTINEL", path)
			cfg.Sentinel = ""
			_, err = neli.New(cfg)
			require.ErrorContains(t, err, "$NELI_SENTINEL: ")
			require.NotContains(t, neli.RunSentinel(t.Context(), neli.Config{Sentinel: path, Provider: cfg.Provider}).Error(), "$NELI_SENTINEL")
		}
	}
}

func TestSentinelCopiesItsConfiguration(t *testing.T) {
	cfg := neli.Config{KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": "a"}}
	allow := []string{"orders"}
	kept, patterns := neli.SentinelKeeps(cfg, allow)
	cfg.KafkaConfig["bootstrap.servers"], allow[0] = "b", "*"
	require.Equal(t, "a", kept.KafkaConfig["bootstrap.servers"])
	require.Equal(t, []string{"orders"}, patterns)
}
