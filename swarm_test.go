package neli_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// Whole curators under random faults. Each seed makes a cluster of a few members
// that are driven in different ways, and a few kinds of faults that strike again
// and again. The sampler asserts exclusiveness throughout; at the end everything
// heals, and every role must be led within a bound; every Acquired must have been
// followed by exactly one Revoked or Fenced.
//
// NELI_SEED=n go test -run TestSwarm replays one seed, with its transcript.

type swarm struct {
	*cluster
	rnd  *rand.Rand
	menu []func(m *member)
	cfg  func(*neli.Config)
	born int
	seen map[string]int
}

func TestSwarm(t *testing.T) {
	from, n := uint64(1), uint64(60)
	if v, err := strconv.ParseUint(os.Getenv("NELI_SEED"), 10, 64); err == nil {
		from, n = v, 1
	} else if v, err := strconv.ParseUint(os.Getenv("NELI_SEEDS"), 10, 64); err == nil {
		n = v
	}
	seen := map[string]int{}
	for seed := from; seed < from+n; seed++ {
		swarmOnce(t, seed, seen)
		if t.Failed() {
			t.Fatalf("seed %d; replay: NELI_SEED=%d go test -run TestSwarm", seed, seed)
		}
	}
	t.Logf("%d seeds: %v", n, seen)
	if n < 50 {
		return
	}
	for _, what := range []string{"leader acquired", "leader revoked (closing)", "leader revoked (unassigned)",
		"leader fenced (lapsed)", "crash", "suspend", "hang", "delay", "acks lost", "duplicate"} {
		require.Positive(t, seen[what], "%q never happened", what)
	}
}

func swarmOnce(t *testing.T, seed uint64, seen map[string]int) {
	rnd := rand.New(rand.NewPCG(seed, 23))
	opts := nelitest.Options{Seed: seed, RebalanceTime: time.Duration(rnd.IntN(500)) * time.Millisecond,
		Jitter: time.Duration(rnd.IntN(20)) * time.Millisecond}
	partitions := 1 + rnd.IntN(3)
	prepare := func(c *cluster) { c.roles, c.period = partitions, 7*time.Millisecond }
	simulateWith(t, opts, prepare, func(c *cluster) {
		s := &swarm{cluster: c, rnd: rnd, seen: seen}
		timeout := []time.Duration{time.Second, 2 * time.Second, 5 * time.Second}[rnd.IntN(3)]
		nomination := neli.Nomination(rnd.IntN(2))
		assignor := []string{"cooperative-sticky", "range"}[rnd.IntN(2)]
		s.cfg = func(cfg *neli.Config) {
			cfg.HeartbeatTimeout, cfg.Nomination, cfg.Partitions = timeout, nomination, partitions
			cfg.MaxPulseInterval, cfg.DrainTimeout = 10*time.Second, 3*time.Second
			cfg.KafkaConfig = neli.KafkaConfigMap{"partition.assignment.strategy": assignor}
		}
		c.say("T %v, %v, %v, %d partitions", timeout, nomination, assignor, partitions)
		all := s.faults()
		for range 1 + rnd.IntN(4) {
			s.menu = append(s.menu, all[rnd.IntN(len(all))])
		}
		for range 2 + rnd.IntN(3) {
			s.start()
		}
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
			s.menu[rnd.IntN(len(s.menu))](s.any())
			c.pass(s.upTo(8 * time.Second))
		}
		s.heal()
		s.allLed(45 * time.Second)
		s.paired()
	})
}

func (s *swarm) upTo(d time.Duration) time.Duration { return time.Duration(s.rnd.Int64N(int64(d))) }

func (s *swarm) any() *member { return s.members[s.names[s.rnd.IntN(len(s.names))]] }

// start brings up a new member that is driven in a random way.
func (s *swarm) start() {
	s.born++
	m := s.join(fmt.Sprint("m", s.born), s.cfg)
	drain := s.upTo(4 * time.Second) // sometimes longer than it may
	m.upon(func(e neli.Event) {
		if _, ok := e.(neli.LeaderRevoked); ok {
			time.Sleep(drain)
		}
	})
	if s.rnd.IntN(2) == 0 {
		s.say("%s starts in the background", m.name)
		_, err := m.Background(m.task)
		require.NoError(s, err)
		return
	}
	s.say("%s starts with Lead", m.name)
	go func() {
		_ = m.Lead(context.Background(), func(ctx context.Context, _ neli.Leadership) error {
			<-ctx.Done()
			time.Sleep(drain)
			return ctx.Err()
		})
	}()
}

// faults are what may happen to a member.
func (s *swarm) faults() []func(m *member) {
	b := s.broker
	later := func(d time.Duration, undo func()) { time.AfterFunc(d, undo) }
	cut := func(links nelitest.Link) func(*member) {
		return func(m *member) {
			s.note("cut off", m, "links %05b", links)
			b.CutOff(m.name, links)
			later(s.upTo(20*time.Second), func() { b.Restore(m.name, links) })
		}
	}
	return []func(*member){
		cut(nelitest.All), cut(nelitest.Appends), cut(nelitest.Reads), cut(nelitest.Group),
		func(m *member) {
			s.note("acks lost", m, "")
			b.CutOff(m.name, nelitest.Acks)
			later(s.upTo(20*time.Second), func() { b.Restore(m.name, nelitest.Acks) })
		},
		func(m *member) {
			s.note("suspend", m, "")
			b.Suspend(m.name)
			later(s.upTo(20*time.Second), func() { b.Resume(m.name) })
		},
		func(m *member) {
			s.note("crash", m, "")
			s.crash(m)
			s.start()
		},
		func(m *member) {
			s.note("close", m, "")
			s.leave(m)
			s.start()
		},
		func(m *member) {
			d := s.upTo(30 * time.Second)
			s.note("delay", m, "the next append by %v", d)
			b.DelayNext(m.name, d)
		},
		func(m *member) { s.note("duplicate", m, ""); b.Duplicate(m.name, 5, s.upTo(10*time.Second)) },
		func(m *member) { s.note("slow reads", m, ""); b.SlowReads(m.name, s.upTo(2*time.Second)) },
		func(m *member) {
			s.note("hang", m, "")
			m.upon(func(neli.Event) { time.Sleep(30 * time.Second) })
		},
		func(m *member) { s.note("expire", m, ""); b.Expire(m.name) },
		func(m *member) { s.note("rebalance", m, ""); b.Rebalance() },
		func(m *member) { s.note("assign all", m, ""); b.Assign(m.name, 0, 1, 2) },
		func(m *member) { s.note("revoke all", m, ""); b.Assign(m.name) },
		func(m *member) {
			s.note("broker restart", m, "")
			b.Stop()
			later(s.upTo(20*time.Second), b.Start)
		},
	}
}

func (s *swarm) note(what string, m *member, format string, args ...any) {
	s.seen[what]++
	s.say("%s: %s %s", m.name, what, fmt.Sprintf(format, args...))
}

// leave closes a member in order, beside everything else.
func (s *swarm) leave(m *member) {
	s.mu.Lock()
	delete(s.members, m.name)
	s.names = slices.DeleteFunc(s.names, func(n string) bool { return n == m.name })
	s.leaving = append(s.leaving, m)
	s.mu.Unlock()
	s.closing.Go(func() { _ = m.Close() })
}

// heal ends all faults; some of them end by themselves a little later.
func (s *swarm) heal() {
	s.pass(20 * time.Second)
	s.say("everything heals")
	for _, name := range s.names {
		s.broker.Restore(name, nelitest.All)
		s.broker.Resume(name)
		s.broker.SlowReads(name, 0)
		s.broker.Duplicate(name, 0, 0)
		s.members[name].upon(nil)
	}
	s.broker.Start()
	s.broker.Rebalance() // forced assignments last until then
}

func (s *swarm) allLed(within time.Duration) {
	s.eventually(within, "leaders for all roles", func() bool {
		for role := range s.roles {
			if !slices.ContainsFunc(s.names, func(n string) bool { return s.members[n].IsLeaderOf(role) }) {
				return false
			}
		}
		return true
	})
}

// paired asserts that each partition's Acquired was followed by one end.
func (s *swarm) paired() {
	s.closing.Wait()
	for _, name := range s.names {
		s.closing.Go(func() { _ = s.members[name].Close() })
	}
	s.closing.Wait()
	s.pass(31 * time.Second) // Close does not wait for ever for a barrier that hangs
	synctest.Wait()
	for _, m := range append(s.gone, s.leaving...) {
		s.pairedOf(m)
	}
	for _, name := range s.names {
		s.pairedOf(s.members[name])
	}
}

func (s *swarm) pairedOf(m *member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	led := map[int]int64{}
	for _, e := range m.events {
		s.seen[strings.SplitN(e.String(), ":", 2)[0]]++
		switch e := e.(type) {
		case neli.LeaderAcquired:
			s.seen["leader acquired"]++
			for _, term := range e.Terms {
				if _, ok := led[term.Partition]; ok {
					s.Errorf("%s acquired partition %d twice", m.name, term.Partition)
				}
				led[term.Partition] = term.Token
			}
		case neli.LeaderRevoked:
			s.ended(m, led, e.Change)
		case neli.LeaderFenced:
			s.ended(m, led, e.Change)
		}
	}
	if len(led) > 0 {
		s.Errorf("%s was never told of the end of %v", m.name, led)
	}
}

func (s *swarm) ended(m *member, led map[int]int64, c neli.Change) {
	for _, term := range c.Terms {
		if token, ok := led[term.Partition]; !ok || token != term.Token {
			s.Errorf("%s was told of the end of partition %d token %d, and had %d (%v)", m.name, term.Partition, term.Token, token, ok)
		}
		delete(led, term.Partition)
	}
}
