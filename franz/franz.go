// Package franz runs NELI on franz-go, a Kafka client in Go: without cgo, on any
// platform that Go builds for, in one static binary.
//
//	n, err := neli.New(neli.Config{
//		LeaderGroupID: "billing",
//		Provider:      franz.Provider(kgo.SeedBrokers("kafka-1:9092", "kafka-2:9092")),
//	})
//
// Leases, records, names and topic ids are the same as with the default client,
// confluent-kafka-go: members on either contend with each other, in one group, and
// one can be replaced by the other member by member.
//
// # Settings
//
// Config.KafkaConfig keeps its meaning: its properties have librdkafka's names, and
// are translated; docs/clients.md has the table. One that is not known, or that
// franz-go has nothing for, is an error of New which names it: nothing is ignored
// unless the table says so and why. The options given to Provider come over the
// properties, and what a lease rests on over both: acknowledgement by all in-sync
// replicas, one request in flight, no idempotence, no commits, offsets that are never
// reset, the group and the topic; kgo.WithContext and kgo.WithLogger, too, are the
// library's own. Options that would break this (kgo.ManualFlushing, for example) are
// errors.
//
// Options set what properties cannot: kgo.SASL for Kerberos or AWS (for AWS module
// github.com/goneli/neli/franz/iam has it), kgo.DialTLSConfig for keys in hardware, kgo.Dialer.
// Secrets within options are unknown to this package, so they are not cut out of logs;
// franz-go does not log them.
//
// # What is different from librdkafka
//
// A broker's delays become errors somewhat later or earlier, never both. Records of
// all partitions that a broker leads share one request, and fetches of many partitions
// name only those that have moved, so many partitions cost less. A topic that was
// deleted and created again is never written to by a producer that knew the former one
// (with brokers from 4.1 on; with older ones after its next look at the metadata). An
// unclean election of a replica that knows nothing of the epoch read last is not
// reported as a truncation; a lease needs unclean elections off anyway.
package franz

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/goneli/neli/internal/login"
	"github.com/goneli/neli/kafka"
)

// Provider returns a provider of franz-go clients, for neli.Config.Provider. The
// options are applied to each client that it makes, over Config.KafkaConfig, and under
// what the library depends on. It starts nothing, and may serve several Nelis.
func Provider(opts ...kgo.Opt) kafka.Provider {
	return provider{opts: slices.Clone(opts)}
}

type provider struct {
	opts  []kgo.Opt
	login kafka.Login
}

// WithLogin implements kafka.LoginProvider.
func (p provider) WithLogin(l kafka.Login) kafka.Provider { return provider{p.opts, l} }

// How long brokers have to hear that a client goes.
const (
	readerGrace = time.Second     // of its fetch sessions, which only cost them memory
	memberGrace = 5 * time.Second // of its membership: a join under way has to end first
)

// unsuitable are options that cannot be undone by those that come later, and that
// would break what the library rests on.
var unsuitable = []struct {
	name string
	opt  any
	why  string
}{
	{"kgo.ManualFlushing", kgo.ManualFlushing, "nobody would flush"},
	{"kgo.TransactionalID", kgo.TransactionalID, "a lease needs no transactions"},
	{"kgo.DefaultProduceTopicAlways", kgo.DefaultProduceTopicAlways, "records name their topic"},
	{"kgo.AllowAutoTopicCreation", kgo.AllowAutoTopicCreation, "the leader topic needs settings of its own"},
	{"kgo.ConsumeRegex", kgo.ConsumeRegex, "the topic is a name"},
	{"kgo.KeepControlRecords", kgo.KeepControlRecords, "they are no records of the library's"},
	{"kgo.BlockRebalanceOnPoll", kgo.BlockRebalanceOnPoll, "rebalances wait for nobody"},
	{"kgo.ShareGroup", kgo.ShareGroup, "a share group assigns no partitions"},
	{"kgo.AllowIdempotentProduceCancellation", kgo.AllowIdempotentProduceCancellation, "nothing is idempotent here"},
}

// client is what the three kinds of client have in common: how one of franz-go is
// made, and what its hooks tell.
type client struct {
	*connections
	settings *settings
	opts     []kgo.Opt // of the user
	// tokens are what to log in with by OAUTHBEARER; nil if that is not the way, or the user's own.
	tokens func(context.Context) (kafka.Token, error)
}

// newClient translates the properties, and tries whether franz-go takes the options,
// with those that this kind of client will be made with.
func (p provider) newClient(kind kind, props map[string]string, log *slog.Logger, fixed func(*settings) []kgo.Opt) (*client, error) {
	s, err := parse(kind, props, slices.Concat(mechanisms(p.opts), tokenMechanism(p.login.Token))...)
	if err != nil {
		return nil, err
	}
	c := &client{connections: newConnections(log), settings: s, opts: p.opts, tokens: p.login.Token}
	if s.security.oidc != nil {
		c.tokens = login.NewSource("no token to log in with", s.security.oidc.token, func(err error) {
			if p.login.Failed != nil {
				p.login.Failed(err)
			}
		}).Token
	}
	trial, err := c.dial(fixed(s)...)
	if err != nil {
		return nil, err
	}
	defer trial.shut(0) // it has opened no connection
	var faults []string
	for _, u := range unsuitable {
		if set(trial.OptValue(u.opt)) {
			faults = append(faults, u.name+": not with this library, "+u.why)
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("client refuses its options: %s", strings.Join(faults, "; "))
	}
	return c, nil
}

// mechanisms are those that options give.
func mechanisms(opts []kgo.Opt) []sasl.Mechanism {
	ctx, stop := context.WithCancel(context.Background())
	made, err := kgo.NewClient(slices.Concat(opts, []kgo.Opt{kgo.WithContext(ctx), kgo.ConsumerGroup(""), kgo.ConsumeTopics(), kgo.ConsumePartitions(nil)})...)
	if err != nil {
		stop()
		return nil // the client that is made with all options says why
	}
	defer (&link{made, stop}).shut(0)
	given, _ := made.OptValue(kgo.SASL).([]sasl.Mechanism)
	return given
}

// set tells an option's value that was given from one that was not.
func set(value any) bool { return value != nil && value != false && value != "" }

// link is a client of franz-go, and what ends its requests: some of what it does while a
// connection is being made ends with nothing else.
type link struct {
	*kgo.Client
	stop context.CancelFunc
}

// shut closes the client. Brokers that do not answer have so much time to do so.
func (l *link) shut(grace time.Duration) {
	force := time.AfterFunc(grace, l.stop)
	l.Close()
	force.Stop()
	l.stop()
}

// dial makes a client, which opens connections when it needs them.
func (c *client) dial(fixed ...kgo.Opt) (*link, error) {
	ctx, stop := context.WithCancel(context.Background())
	opts := slices.Concat(
		c.settings.opts(),
		c.signingIn(ctx),
		c.opts,
		[]kgo.Opt{
			kgo.WithContext(ctx),
			kgo.WithLogger(logger{c.log}),
			kgo.WithHooks(c.connections),
			// None of these, unless what follows says otherwise.
			kgo.ConsumerGroup(""), kgo.ConsumeTopics(), kgo.ConsumePartitions(nil),
		},
		fixed,
	)
	made, err := kgo.NewClient(opts...)
	if err != nil {
		stop()
		return nil, fmt.Errorf("client refuses its options: %w", err)
	}
	return &link{made, stop}, nil
}
