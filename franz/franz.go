// Package franz runs NELI on franz-go, a Kafka client in Go. It needs no cgo, runs on any
// platform that Go builds for, and allows one static binary.
//
//	n, err := neli.New(neli.Config{
//		LeaderGroupID: "billing",
//		Provider:      franz.Provider(kgo.SeedBrokers("kafka-1:9092", "kafka-2:9092")),
//	})
//
// Leases, records, names and topic ids are the same as with the default client,
// confluent-kafka-go. Members with either client contend with each other in one group, and one
// client can be replaced with the other member by member.
//
// # Settings
//
// Config.KafkaConfig keeps its meaning: its properties have librdkafka's names and are
// translated. docs/clients.md has the table. New returns an error that names each property that
// is unknown, or that franz-go has nothing for. A property is ignored only if the table says so,
// and why. Options given to Provider take precedence over properties. What a lease depends on
// takes precedence over both: acknowledgement by all in-sync replicas, one request in flight, no
// idempotence, no commits, offsets that are never reset, the group and the topic. kgo.WithContext
// and kgo.WithLogger are set by the library, too. Options that would break this
// (kgo.ManualFlushing, for example) are errors. So are kgo.SessionTimeout, kgo.HeartbeatInterval and
// kgo.ServerSideBalancer in place of session.timeout.ms, heartbeat.interval.ms and
// group.protocol=consumer: the library compares these times with T.
//
// Options can set what properties cannot: kgo.SASL for Kerberos or AWS (module
// github.com/goneli/neli/franz/iam has the mechanism for AWS), kgo.DialTLSConfig for keys in
// hardware, kgo.Dialer. This package does not know the secrets within options, so they are not
// cut out of logs; franz-go does not log them.
//
// # What is different from librdkafka
//
// Delays of a broker become errors somewhat earlier or later. Records for all partitions that a
// broker leads share one request, and a fetch of many partitions names only those that have
// changed, so many partitions cost less. If a topic is deleted and created again, a producer that
// knew the former one never writes to the new one with brokers from 4.1 on; with older brokers it
// stops at its next look at the metadata. If an unclean election chooses a replica that does not
// know the epoch read last, that is not reported as a truncation. A lease needs unclean elections
// to be off anyway.
package franz

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/goneli/neli/internal/login"
	"github.com/goneli/neli/kafka"
)

// Provider returns a provider of franz-go clients, for neli.Config.Provider. The options are
// applied to each client that it makes. They take precedence over Config.KafkaConfig, but not
// over what the library depends on. Provider starts nothing. Its result may be used by several
// Nelis, and from any goroutine.
func Provider(opts ...kgo.Opt) kafka.Provider {
	return provider{opts: slices.Clone(opts)}
}

type provider struct {
	opts  []kgo.Opt
	login kafka.Login
}

// WithLogin implements kafka.LoginProvider.
func (p provider) WithLogin(l kafka.Login) kafka.Provider { return provider{p.opts, l} }

// How long a closing client waits for brokers.
const (
	readerGrace = time.Second     // to end its fetch sessions; open ones only cost them memory
	memberGrace = 8 * time.Second // to note that it leaves the group; a join in progress ends first, and waits for the sessions of dead members
)

// unsuitable are options that later options cannot undo, and that would break what the library depends on.
var unsuitable = []struct {
	name string
	opt  any
	why  string
}{
	{"kgo.ManualFlushing", kgo.ManualFlushing, "the library does not flush"},
	{"kgo.TransactionalID", kgo.TransactionalID, "a lease needs no transactions"},
	{"kgo.DefaultProduceTopicAlways", kgo.DefaultProduceTopicAlways, "records name their topic"},
	{"kgo.AllowAutoTopicCreation", kgo.AllowAutoTopicCreation, "the leader topic needs settings of its own"},
	{"kgo.ConsumeRegex", kgo.ConsumeRegex, "the topic is a single name"},
	{"kgo.KeepControlRecords", kgo.KeepControlRecords, "they are not records of the library"},
	{"kgo.BlockRebalanceOnPoll", kgo.BlockRebalanceOnPoll, "rebalances must not wait for polls"},
	{"kgo.ShareGroup", kgo.ShareGroup, "a share group assigns no partitions"},
	{"kgo.AllowIdempotentProduceCancellation", kgo.AllowIdempotentProduceCancellation, "nothing is idempotent here"},
}

// client is what the three kinds of client have in common: how to make a client of franz-go, and
// what its hooks report.
type client struct {
	*connections
	settings *settings
	opts     []kgo.Opt // given by the user
	// tokens returns the tokens for OAUTHBEARER; nil if the client does not log in that way, or does
	// by an option.
	tokens func(context.Context) (kafka.Token, error)
	source *login.Source // of tokens from an endpoint; nil if the client uses none
}

// newClient translates the properties. It checks that franz-go accepts them, together with the
// user's options and with the options that this kind of client needs.
func (p provider) newClient(kind kind, props map[string]string, log *slog.Logger, fixed func(*settings) []kgo.Opt) (*client, error) {
	if i := slices.Index(p.opts, nil); i >= 0 { // franz-go would panic
		return nil, fmt.Errorf("client refuses its options: option %d of %d is nil", i+1, len(p.opts))
	}
	given := mechanisms(p.opts)
	s, err := parse(kind, props, slices.Concat(given, tokenMechanism(p.login.Token))...)
	if err != nil {
		return nil, err
	}
	c := &client{connections: newConnections(log), settings: s, opts: p.opts, tokens: p.login.Token}
	switch {
	case len(given) > 0: // franz-go logs in with the first mechanism of all
		s.security.mechanics, c.tokens = nil, nil
	case s.security.oidc != nil:
		c.source = login.NewSource("no token to log in with", s.security.oidc.token, func(err error) {
			if p.login.Failed != nil {
				p.login.Failed(err)
			}
		})
		c.tokens = c.source.Token
	}
	trial, err := c.dial(fixed(s)...)
	if err != nil {
		return nil, err
	}
	defer trial.shut(0) // it has opened no connection
	var faults []string
	for _, u := range unsuitable {
		if set(trial.OptValue(u.opt)) {
			faults = append(faults, u.name+": not possible with this library, "+u.why)
		}
	}
	if kind == forGroup {
		faults = append(faults, hiddenTimes(trial, props, s.serverSide)...)
	}
	s.instance = s.instance || set(trial.OptValue(kgo.InstanceID))
	if len(faults) > 0 {
		return nil, fmt.Errorf("client refuses its options: %s", strings.Join(faults, "; "))
	}
	return c, nil
}

// hiddenTimes returns the options that change when a group notices the loss of a member. The library
// compares these times with T, and knows only the properties.
func hiddenTimes(trial *link, props map[string]string, serverSide bool) (faults []string) {
	const instead = "%s: set %s instead, which tells the library the group's times"
	if !serverSide && set(trial.OptValue(kgo.ServerSideBalancer)) {
		faults = append(faults, fmt.Sprintf(instead, "kgo.ServerSideBalancer", "group.protocol=consumer"))
	}
	for _, t := range []struct {
		name, property string
		opt            any
	}{
		{"kgo.SessionTimeout", "session.timeout.ms", kgo.SessionTimeout},
		{"kgo.HeartbeatInterval", "heartbeat.interval.ms", kgo.HeartbeatInterval},
	} {
		ms, err := strconv.Atoi(props[t.property])
		if err == nil && trial.OptValue(t.opt) != time.Duration(ms)*time.Millisecond {
			faults = append(faults, fmt.Sprintf(instead, t.name, t.property))
		}
	}
	return faults
}

// mechanisms returns the SASL mechanisms that options give. It makes a client for each single option,
// because without the properties and the library's options franz-go may refuse all of them together.
func mechanisms(opts []kgo.Opt) (given []sasl.Mechanism) {
	for _, opt := range opts {
		ctx, stop := context.WithCancel(context.Background())
		made, err := kgo.NewClient(opt, kgo.WithContext(ctx), kgo.ConsumerGroup(""), kgo.ConsumeTopics(), kgo.ConsumePartitions(nil))
		if err != nil {
			stop()
			continue // it is not kgo.SASL, since franz-go accepts that alone
		}
		if of, ok := made.OptValue(kgo.SASL).([]sasl.Mechanism); ok {
			given = append(given, of...)
		}
		(&link{made, stop}).shut(0)
	}
	return given
}

// set reports whether an option's value was given.
func set(value any) bool { return value != nil && value != false && value != "" }

// link is a client of franz-go, with the function that ends its context. While a connection is being
// set up, only the context ends some requests.
type link struct {
	*kgo.Client
	stop context.CancelFunc
}

// shut closes the client. It waits for at most grace for brokers to answer.
func (l *link) shut(grace time.Duration) {
	force := time.AfterFunc(grace, l.stop)
	l.Close()
	force.Stop()
	l.stop()
}

// dial makes a client. The client opens connections when it needs them.
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
			// None of these, unless a later option sets them.
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
