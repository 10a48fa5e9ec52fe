package neli

import (
	"context"
	"log/slog"
	"time"

	"github.com/goneli/neli/kafka"
)

// KafkaConfigMap holds librdkafka's configuration properties by their own names.
// Values are strings, booleans or integers.
type KafkaConfigMap = kafka.ConfigMap

// Token is what Config.Token returns.
type Token = kafka.Token

// Config configures a Neli. The zero value works against a broker on
// localhost:9092: one exclusive role, contended by all processes of the same
// binary name.
type Config struct {
	// KafkaConfig is passed to the Kafka clients: bootstrap.servers, security,
	// timeouts, group.instance.id, partition.assignment.strategy, group.protocol
	// and so on. The library completes it with timeouts tuned for brokers that fall
	// silent; your own values win. Some properties are the library's (acks,
	// group.id, auto.offset.reset, enable.auto.commit and the like) and are
	// refused. Never logged unredacted. Default: bootstrap.servers=localhost:9092.
	KafkaConfig KafkaConfigMap

	// LeaderGroupID names the consumer group whose members contend. In exclusive
	// mode it also separates groups that share a topic. Default: the name of the
	// binary, unless that is one that many programs have (main, server, app, or what
	// a debugger builds): these would elect one leader between them.
	LeaderGroupID string

	// LeaderTopic is the topic that carries the election. Default:
	// LeaderGroupID + ".neli".
	LeaderTopic string

	// DisableTopicCreation leaves it to you to create LeaderTopic; until it is
	// there nobody leads. Default: false, a missing topic is created.
	DisableTopicCreation bool

	// Name tells this process from others in logs and in the topic. It need not be
	// unique. Default: {host}_{pid}_{time}.
	Name string

	// Mode is Exclusive or NonExclusive. All members of a group use the same.
	// Default: Exclusive.
	Mode Mode

	// Nomination says who may claim in exclusive mode, Open or Assigned; it is
	// ignored in non-exclusive mode. All members of a group use the same. Default:
	// Open.
	Nomination Nomination

	// Priority says how much this process is wanted as a leader: with Open
	// nomination, of those who are there and healthy the ones with the highest
	// priority lead. The others claim what they leave vacant, and hand it over once a
	// preferred one has been there for 15 s. Between −1,000,000 and 1,000,000.
	// Default: 0.
	Priority int

	// Preference takes the place of Priority where that must depend on the role: it
	// says how much member m is wanted for a role; the highest number is preferred. Of
	// m it is given what is the same at every process, Name, ID and Priority; Self,
	// Heard, Age and Nominated are zero. All members should use the same function, and
	// it should depend on its arguments only; where two members come to different
	// results, roles may move to and fro (none more than once in 30 s), and no promise
	// is touched. It is called once for each role and member when that is first heard,
	// on a goroutine of the library's that has the beats to send: it must return at
	// once. Open nomination only. Default: none.
	Preference func(m Member, role int) int

	// DisableRebalance lets a leader stay for as long as it lives and is healthy. Otherwise
	// a leader that has more roles than its share hands over the surplus, in batches, and any
	// role for which a preferred member has come. It makes room only for members that have been
	// there, healthy, for 15 s; a role that was moved does not move again within 30 s; a
	// difference of a tenth stays. Open nomination only.
	DisableRebalance bool

	// Healthy is this process's own check of whether it should lead, nil if so. It is
	// called about once a second, never concurrently with itself, on a goroutine of
	// its own. While it returns an error this process claims nothing, and gives up
	// what it has in an orderly way (LeaderRevoked, ReasonUnhealthy); so it does
	// while a call has not returned for 5 s. In non-exclusive mode it leaves the group,
	// and leads on for T, so that others have taken over by then. Close waits for a call
	// that is under way. Default: always healthy.
	Healthy func() error

	// Requests decides on what other processes ask of this one (Ask; the command neli, by
	// its transfer and step-down): nil, and this process does what Transfer or StepDown do; an
	// error, and it keeps what it leads. The error's text is told to whoever asked, in
	// the topic: no secrets. It is called for roles that this process leads only, one
	// request at a time, once a second on average and four times at once at most, on a goroutine
	// of its own, which also carries out what it accepts before it takes the next one;
	// what does not find its turn is as good as lost, and is sent again. It holds nothing
	// up but other requests, and Close, which waits for a call that is under way. What it is
	// given is the word of whoever may write to the topic, who asks and under which name
	// included: accept what you would not mind anybody of them to ask for. After 30 s whoever asks
	// is told that there is no answer. Exclusive mode only.
	// Default: none, all requests are refused.
	Requests func(Request) error

	// Observer makes this process watch who leads without ever contending: Holder,
	// Watch and Members work, Pulse, Background and Lead return ErrObserver, and no
	// barrier is called. It joins no group, creates no topic and writes nothing but what
	// Ask sends, so without that it needs no right but READ on LeaderTopic. Roles, HeartbeatTimeout and
	// MaxClockDrift should be those of the members. Exclusive mode only. Default:
	// false.
	Observer bool

	// Roles is R, the number of roles, numbered from 0; 1,000,000 at most. Role j lives
	// on partition j mod M. In exclusive mode each has a leader and a token of its own,
	// and one beat renews all that a process leads on a partition; in non-exclusive mode
	// all roles of a partition are led together. Processes may differ in R for a while:
	// each leads only roles that it knows of. SetRoles changes it at run time. Default: 1.
	Roles int

	// Partitions is M if the topic has to be created. An existing topic keeps the
	// number it has. Default: 1.
	Partitions int

	// Logs, 3 or 5, elects on a majority of so many logs in place of one: partitions of
	// one replica each, on different brokers, in different racks where there are any. So a
	// broker may crash, and every role is led on, with a T as short as 500 ms; the one
	// replicated log stalls for seconds then. It costs: partitions of one replica make
	// monitoring complain, a broker that has lost its disk comes back with an empty log
	// and nobody says so, and tokens are ballots (see kafka.SmallLogs): they go up as long as
	// the wall clocks of all members are within half of HeartbeatTimeout of each other,
	// which exclusivity does not need. docs/tuning.md says when to take it.
	//
	// The topic's name is LeaderTopic, completed with Logs, HeartbeatTimeout and
	// MaxClockDrift ("app.neli.logs-3.t-500ms.rho-0.0005"): members that differ in one of
	// these do not meet, and would lead side by side, so change them with all members
	// stopped for HeartbeatTimeout. The topic is created so if it is missing;
	// ErrTopicPlacement says what is wrong with one that is there. While members live its
	// partitions must not be reassigned. Exclusive mode and Open nomination only. Not
	// together with Partitions, nor with a Provider that has kafka.SmallLogs. Default: 0, which
	// is one log with the topic's replication; 1 is the same.
	Logs int

	// HeartbeatTimeout is T: leadership lasts until the newest evidence of it is
	// this old. Exclusive: from 100 ms to 60 s; default 5 s. The upper limit is a
	// constant of the protocol: a process that knows nothing of the log waits that
	// long, because the leader that it has not heard may have it. Non-exclusive: longer
	// than the group's session timeout plus two broadcast intervals, 24 h at most;
	// default three session timeouts (18 s, or 135 s with group.protocol=consumer).
	HeartbeatTimeout time.Duration

	// HeartbeatInterval is the time between beats. Exclusive: the holder's; at most
	// 0.225 HeartbeatTimeout, which is a quarter of the nine tenths of it for which a
	// holder leads without a new beat; default HeartbeatTimeout/5. Non-exclusive: every
	// process's, multiplied by GroupsOnTopic; default HeartbeatTimeout/20.
	HeartbeatInterval time.Duration

	// MaxPulseInterval: an application that has not called Pulse for so long is
	// taken for hung. Its beats stop and it leaves the group, so that another
	// process takes over. A pending Pulse and a running Lead count as pulses.
	// Default: 30 s.
	MaxPulseInterval time.Duration

	// DrainTimeout bounds how long LeaderRevoked may hold a successor back.
	// Exclusive mode only. Default: 10 s.
	DrainTimeout time.Duration

	// GroupsOnTopic is how many groups share the topic in non-exclusive mode: any
	// group's broadcasts keep all partitions alive, so each may send less often.
	// Default: 1.
	GroupsOnTopic int

	// TokenBase is added to every fencing token that this process hands out or tells
	// of: Token, Term.Token, Leadership.Token, Holder.Token. Tokens are offsets, so
	// they start again from 0 when the leader topic is created anew, moved to another
	// cluster, or given more partitions while all members are stopped (roles then
	// live elsewhere); whatever keeps the highest token it has seen would refuse the
	// rightful leader from then on. Whenever that happens, raise TokenBase above the
	// highest token that was ever handed out, before the first member starts. All
	// members of a group use the same. Exclusive mode only. At least 0, at most
	// 2^62. Default: 0.
	TokenBase int64

	// MaxClockDrift is ρ, the largest rate error, as a fraction, of any member's clock
	// that nobody slews: CLOCK_MONOTONIC_RAW on Linux, the monotonic clock elsewhere.
	// It is that of the hardware; what a time daemon does to the clock in order to
	// correct it does not count, and clocks need not be synchronised. Exclusive mode
	// only; all members of a group use the same. At most 0.2. Default: 0.0005 (500 ppm).
	MaxClockDrift float64

	// Sentinel is the path of the socket of a sentinel on this machine (RunSentinel, the
	// command neli sentinel), which proves by a pidfd that this process has died and gives back what it
	// held: another leads within round trips, and not after HeartbeatTimeout. A sentinel that is
	// not there, or refuses, is never fatal: a crash costs HeartbeatTimeout then, which
	// Stats.Sentinel and a warning tell. The socket's directory must belong to the sentinel's user
	// or root, and nobody else may be able to write to it. Linux 5.3 or later; elsewhere it is refused.
	// Exclusive mode only; with Assigned nomination little is gained, as the group has to drop the
	// dead process first. An observer ignores it. docs/sentinel.md says when to take it. Default: $NELI_SENTINEL, which
	// non-exclusive mode ignores; empty, none.
	Sentinel string

	// Logger receives changes of leadership at Info, trouble at Warn, protocol
	// detail at Debug. Messages are constant; data is in attributes, of which every line
	// has group and name (docs/runbook.md lists them). Default: discard, so that
	// nothing is said of a wrong address either.
	Logger *slog.Logger

	// Token logs in by SASL/OAUTHBEARER with tokens of your own making, where properties do not say
	// how they are had (sasl.oauthbearer.*: docs/security.md). It returns a token and when that
	// ends; it is asked for another one when four fifths of that time are over, one call at
	// a time, with 10 s to answer. All clients of a Neli share what it returns. An error is
	// retried, counted (Stats.TokenFailures) and logged, and meanwhile the former token is used; an error that
	// is ErrAccess, or a token that has ended or does not say when it ends, ends a Neli that has never logged
	// in. KafkaConfig needs security.protocol SASL_SSL (or SASL_PLAINTEXT, which sends tokens in clear text). Default: none.
	Token func(context.Context) (Token, error)

	// Provider makes the Kafka clients, or gives small logs in place of Kafka
	// (kafka.SmallLogs). Default: confluent-kafka-go, which needs cgo, and is left out of a
	// binary by the build tag neli_nolibrdkafka. Module github.com/goneli/neli/franz
	// has another one, in Go: docs/clients.md.
	Provider kafka.Provider
}
