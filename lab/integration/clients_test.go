package integration

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	labclients "github.com/goneli/neli/lab/clients"
	"github.com/goneli/neli/lab/kafkatest"
)

// clients has all Kafka clients. Tests of what the library needs from a client, and of groups with different clients,
// always use both.
var clients = map[string]func() kafka.Provider{
	"confluent": func() kafka.Provider { return clientNamed("confluent") },
	"franz":     func() kafka.Provider { return clientNamed("franz") },
}

// client returns the client that NELI_PROVIDER names.
func client() kafka.Provider { return clientNamed("") }

// clientNamed returns the client of that name, or for "" the one that NELI_PROVIDER names.
func clientNamed(name string) kafka.Provider {
	if name = cmp.Or(name, os.Getenv(labclients.Env)); name == "" {
		return nil
	}
	p, err := labclients.Named(name)
	if err != nil {
		panic(err) // TestMain has checked the name
	}
	return p
}

// byClient returns the value for the default client, or for franz if that is being tested.
func byClient[T any](confluent, franz T) T {
	if os.Getenv(labclients.Env) == "franz" {
		return franz
	}
	return confluent
}

// Members on either client are one group: they elect one leader for each role, share
// the roles out, and hand over to each other, in both directions.
func TestMixedClients(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Run(t, kafkatest.Options{BrokerProps: steadyBroker()})
	for _, mode := range []struct {
		name string
		set  func(*neli.Config)
	}{
		{"open", func(c *neli.Config) { c.Nomination = neli.NominationOpen }},
		{"assigned", func(c *neli.Config) { c.Nomination = neli.NominationAssigned }},
		{"assigned, range", func(c *neli.Config) {
			c.Nomination = neli.NominationAssigned
			c.KafkaConfig["partition.assignment.strategy"] = "range"
		}},
		{"assigned by the broker", func(c *neli.Config) {
			c.Nomination = neli.NominationAssigned
			c.KafkaConfig["group.protocol"] = "consumer"
		}},
		{"non-exclusive", func(c *neli.Config) { c.Mode = neli.NonExclusive }},
	} {
		t.Run(mode.name, func(t *testing.T) {
			base, _ := hostileConfig(cluster.Bootstrap(), "mixed", func(c *neli.Config) {
				mode.set(c)
				c.Roles, c.Partitions = 4, 4
			})
			start := func(name string) *hostileMember {
				cfg, log := hostileConfig(cluster.Bootstrap(), "unused", mode.set)
				cfg.LeaderGroupID, cfg.LeaderTopic, cfg.Name = base.LeaderGroupID, base.LeaderTopic, name
				cfg.Roles, cfg.Partitions, cfg.Provider = 4, 4, clients[name]()
				return hostileStart(t, cfg, log)
			}
			const within = 2 * time.Minute // a role may stay where it is for half a minute
			for _, names := range [][2]string{{"confluent", "franz"}, {"franz", "confluent"}} {
				first, second := start(names[0]), start(names[1])
				hostileUntil(t, within, func() bool { return len(led(first)) > 0 && len(led(second)) > 0 && together(first, second) }, "they share the roles")
				if mode.name != "non-exclusive" {
					for range 200 { // and never the same ones
						for role := range 4 {
							require.False(t, bothLead(first, second, role), "role %d", role)
						}
						<-time.After(5 * time.Millisecond)
					}
				}
				began := time.Now()
				require.NoError(t, first.Close())
				hostileUntil(t, within, func() bool { return len(led(second)) == 4 }, "the other one has them all")
				t.Logf("%s handed over to %s: %v after Close began", names[0], names[1], time.Since(began).Round(time.Millisecond))
				require.NoError(t, second.Close())
			}
		})
	}
}

func led(m *hostileMember) []int { return slices.Collect(m.Led()) }

// bothLead reports whether there is an instant at which both lead the role: a has led it in the same term before and after
// b did. Without the second look at a, the role may have moved between the two looks.
func bothLead(a, b *hostileMember, role int) bool {
	before, leads := a.Token(role)
	_, other := b.Token(role)
	after, still := a.Token(role)
	return leads && other && still && before == after
}

// together reports whether the two lead all roles between them.
func together(a, b *hostileMember) bool {
	all := append(led(a), led(b)...)
	slices.Sort(all)
	return len(slices.Compact(all)) == 4
}

// Both clients return a topic's id as the same string, since records have it. This includes ids with characters that
// differ between variants of base64.
func TestTopicIDsAgree(t *testing.T) {
	cluster := kafkatest.Run(t, kafkatest.Options{BrokerProps: steadyBroker()})
	admin := newHostileAdmin(t, cluster.Bootstrap())
	silent := slog.New(slog.DiscardHandler)
	var admins []kafka.Admin
	for _, make := range clients {
		provider := make()
		p, err := provider.Producer(map[string]string{"bootstrap.servers": cluster.Bootstrap(), "acks": "all"}, silent)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, p.Close()) })
		a, err := provider.Admin(p)
		require.NoError(t, err)
		t.Cleanup(a.Close)
		admins = append(admins, a)
	}
	special := false
	for i := range 12 {
		topic := fmt.Sprintf("id-%d", i)
		admin.create(t, topic, 1, 1, nil)
		one, err := admins[0].Topic(t.Context(), topic)
		require.NoError(t, err)
		other, err := admins[1].Topic(t.Context(), topic)
		require.NoError(t, err)
		require.Equal(t, one, other)
		special = special || slices.ContainsFunc([]rune(one.ID), func(r rune) bool { return r == '+' || r == '/' || r == '-' || r == '_' })
	}
	t.Logf("ids with special characters: %v", special)
}
