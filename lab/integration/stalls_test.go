package integration

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/kafkatest"
)

// envStalls sets how long TestSharedStalls goes on stalling the log of each group. It is a duration; the default is short.
// If it is set, the machine should be quiet, and groups with short sessions take part, too.
const envStalls = "NELI_STALLS"

// stalls lets the log stand still for all members: it holds back what they append, in order. The group's coordinator answers
// as always.
type stalls struct {
	mu    sync.Mutex
	still bool
	held  []func()
}

func (s *stalls) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.still = true
}

func (s *stalls) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, do := range s.held {
		do()
	}
	s.still, s.held = false, nil
}

// stallingProvider is a client whose producers the stalls hold back.
type stallingProvider struct {
	kafka.Provider
	stalls *stalls
}

func (p stallingProvider) Producer(props map[string]string, log *slog.Logger) (kafka.Producer, error) {
	inner, err := p.Provider.Producer(props, log)
	return stallingProducer{inner, p.stalls}, err
}

func (p stallingProvider) Admin(over kafka.Producer) (kafka.Admin, error) {
	return p.Provider.Admin(over.(stallingProducer).Producer)
}

type stallingProducer struct {
	kafka.Producer
	stalls *stalls
}

func (p stallingProducer) Append(topic string, partition int, value []byte, report func(error)) error {
	p.stalls.mu.Lock()
	defer p.stalls.mu.Unlock()
	if !p.stalls.still {
		return p.Producer.Append(topic, partition, value, report)
	}
	p.stalls.held = append(p.stalls.held, func() {
		if err := p.Producer.Append(topic, partition, value, report); err != nil {
			go report(err)
		}
	})
	return nil
}

// A stall of the log that is shorter than T − B − J leaves no role without a leader. If the member is the only one, or T
// too short for a rebalance, the limit is T − B. See docs/tuning.md.
func TestSharedStalls(t *testing.T) {
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv(envStalls), "15s"))
	require.NoError(t, err, envStalls)
	quiet := os.Getenv(envStalls) != ""
	cluster := kafkatest.Run(t, kafkatest.Options{BrokerProps: map[string]string{
		"group.initial.rebalance.delay.ms": "0",
		"group.min.session.timeout.ms":     "100",
	}})
	const ms = time.Millisecond
	for _, c := range []struct {
		session, heartbeat, timeout time.Duration
		quiet                       bool // needs a quiet machine
		tenths                      []time.Duration
	}{
		{100 * ms, 10 * ms, 300 * ms, true, []time.Duration{3, 5, 7}},
		{100 * ms, 10 * ms, time.Second, true, []time.Duration{3, 5, 7, 8}},
		{500 * ms, 50 * ms, 1500 * ms, true, []time.Duration{3, 5, 7, 8}},
		{time.Second, 100 * ms, 3 * time.Second, true, []time.Duration{2, 3}},
		{2 * time.Second, 200 * ms, 6 * time.Second, false, []time.Duration{3, 4}},
		{6 * time.Second, 500 * ms, 18 * time.Second, true, []time.Duration{3, 5, 7, 8}},
	} {
		if c.quiet && !quiet {
			continue
		}
		for _, members := range []int{1, 3} {
			t.Run(fmt.Sprintf("S=%v T=%v members=%d", c.session, c.timeout, members), func(t *testing.T) {
				if !quiet || c.timeout >= 6*time.Second {
					t.Parallel() // it mostly waits
				}
				g := startStalled(t, cluster.Bootstrap(), members, c.session, c.heartbeat, c.timeout)
				began := time.Now()
				for i := 0; i == 0 || time.Since(began) < lasts; i++ {
					stall := c.timeout * c.tenths[i%len(c.tenths)] / 10
					g.watch(c.timeout)
					g.stalls.begin()
					g.watch(stall)
					g.stalls.end()
					g.watch(c.timeout)
					t.Logf("a stall of %v: without a leader for %v; groups formed %d times", stall, g.gaps(), g.formed())
				}
				for role, gap := range g.total {
					assert.Zero(t, gap, "role %d", role)
				}
			})
		}
	}
}

// stalledGroup is a group whose log may stand still.
type stalledGroup struct {
	stalls  *stalls
	members []*hostileMember
	last    []time.Time     // by role: when it was last seen led
	gap     []time.Duration // by role, since the last call of gaps
	total   []time.Duration // by role
}

func startStalled(t *testing.T, bootstrap string, members int, session, heartbeat, timeout time.Duration) *stalledGroup {
	const roles = 3
	g := &stalledGroup{stalls: &stalls{}, last: make([]time.Time, roles), gap: make([]time.Duration, roles), total: make([]time.Duration, roles)}
	p := client()
	if p == nil {
		p = clientNamed("confluent")
	}
	base, log := hostileConfig(bootstrap, "stalls", func(c *neli.Config) { c.Mode, c.Nomination = neli.NonExclusive, 0 })
	for i := range members {
		cfg := base
		cfg.Name = fmt.Sprint("member", i)
		cfg.Provider, cfg.Roles, cfg.Partitions = stallingProvider{p, g.stalls}, roles, roles
		cfg.HeartbeatTimeout, cfg.HeartbeatInterval = timeout, 0
		cfg.KafkaConfig["session.timeout.ms"], cfg.KafkaConfig["heartbeat.interval.ms"] = session.Milliseconds(), heartbeat.Milliseconds()
		g.members = append(g.members, hostileStart(t, cfg, log))
	}
	hostileUntil(t, time.Minute, func() bool {
		for role := range roles {
			if !g.led(role) {
				return false
			}
		}
		return true
	}, "all roles have leaders")
	g.watch(5*time.Second + timeout) // until the group has settled
	g.gaps()
	clear(g.total)
	return g
}

func (g *stalledGroup) led(role int) bool {
	for _, m := range g.members {
		if m.IsLeaderOf(role) {
			return true
		}
	}
	return false
}

// watch looks at the leaders every other millisecond, for a while.
func (g *stalledGroup) watch(d time.Duration) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-tick.C {
		for role := range g.last {
			now := time.Now()
			if !g.led(role) {
				g.gap[role] += now.Sub(g.last[role])
				g.total[role] += now.Sub(g.last[role])
			}
			g.last[role] = now
		}
	}
}

// gaps returns for how long each role had no leader since the last call.
func (g *stalledGroup) gaps() (gaps []time.Duration) {
	for role, gap := range g.gap {
		gaps = append(gaps, gap.Round(time.Millisecond))
		g.gap[role] = 0
	}
	return gaps
}

// formed returns how many assignments the members were told of.
func (g *stalledGroup) formed() int { return strings.Count(g.members[0].log.tail(1<<20), assignedLine) }
