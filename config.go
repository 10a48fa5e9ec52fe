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

// Config configures a Neli. The zero value contends for one exclusive role against a broker on
// localhost:9092; all processes with the same binary name form the group.
//
// The fields stand in five sections: who contends, from LeaderGroupID on; what is led, from Mode on;
// how long it lasts, from HeartbeatTimeout on; Kafka, from KafkaConfig on; operations, from Requests
// on. docs/guide.md#what-works-in-which-mode has a table of the fields and calls that a mode ignores or
// refuses. New refuses what does not fit.
type Config struct {
	// The group, its members and their preference.

	// LeaderGroupID names the group of processes that contend with each other. It is also the name
	// of the consumer group where one is used. Groups with different names may share a topic (see
	// GroupsOnTopic). 1 to 255 bytes of UTF-8. Default: the name of the binary. A name that many
	// programs have (main, server, app, a debugger's binary) is refused, since unrelated programs
	// would elect one leader between them.
	LeaderGroupID string

	// Name identifies this process to people, in logs and in the topic. It need not be unique. At
	// most 256 bytes of UTF-8. Default: {host}_{pid}_{time}.
	Name string

	// Advertise is the address by which other processes and users reach this one: host:port, or a URL
	// with http, https, ws, wss, grpc or grpcs, without user and password. Others find it in Holder and
	// Member, and can send requests there. Only nelihttp.Forward and module neligrpc do so in this
	// library. All who can read the topic can read the address. At most 256 bytes of UTF-8,
	// without blanks. It needs Mode Exclusive. Default: none.
	Advertise string

	// Zone is where this process runs: a data centre, a rack, a region. Others find it in Holder and
	// Member. At most 64 bytes of UTF-8, without blanks. It needs Mode Exclusive. Default: none.
	Zone string

	// Observer makes this process watch the election without contending. Holder, Watch and Members
	// work; Pulse, Background, Lead, StepDown and Rebalance return ErrObserver; no barrier is called.
	// An observer joins no group and creates no topic. It needs READ on LeaderTopic, and WRITE only for Ask. Give
	// it the members' LeaderGroupID, LeaderTopic, Roles, HeartbeatTimeout, MaxClockDrift, Logs and TokenBase.
	// Default: false.
	Observer bool

	// Nomination says which processes may claim a role: NominationOpen or NominationAssigned. All
	// members of a group must use the same one. Default: NominationOpen.
	Nomination Nomination

	// Priority ranks this process as a leader: among the healthy members, those with the highest
	// priority lead. Members with a lower priority claim the roles that are left vacant, and hand
	// them over once a member with a higher priority has been present for 15 s. SetPriority
	// changes it at run time. Between −1,000,000 and 1,000,000. Default: 0.
	Priority int

	// MaxRoles is the most roles that this process is to lead. Further roles that its share or preference
	// would give it go to other members: first to equally preferred ones, then to the next. If all members
	// lead as many as they want, the members that lead least get the rest, and log a warning: no role stays
	// without a leader. Transfer may exceed MaxRoles, too. No leader hands a role to a member that was not yet
	// present for 15 s (sooner in a new group). MaxRoles needs Open nomination, and has no effect while
	// a member whose version lacks it is present. At most 1,000,000. Default: 0, no limit.
	MaxRoles int

	// Preference replaces Priority where the ranking depends on the role. It returns how much
	// member m is preferred for a role; the highest number wins. Only Name, ID, Priority, Advertise and
	// Zone of m are set, because these are the same at every process.
	//
	// All members should use the same function, and its result should depend on its arguments
	// only; ByZone returns one for zones. If two members disagree, roles may move back and forth (each at
	// most once in 30 s); safety is not affected. The library calls it for each role and member, on a goroutine
	// of its own: when the member is first heard, and again when one of these fields or R has changed. Until
	// the calls have returned, the member is not preferred; after five seconds a warning is logged. Close
	// waits for a call in progress. Default: none.
	Preference func(m Member, role int) int

	// Weight says how much work a role is, compared with the others. Balance then levels the weight that each
	// member leads instead of the number of roles, with the same tolerance of a tenth. A role moves only if that
	// makes the difference of the two members smaller. So a role that weighs more than a share stays, and its leader
	// gets no other role. Preference comes first, and MaxRoles counts roles.
	//
	// All members should use the same function, and its result should depend on the role only. If two members disagree,
	// roles may move back and forth (each at most once in 30 s); safety is not affected. New and SetRoles call it once
	// for each role below Roles, on their callers' goroutines. From 1 to 1,000,000. Default: none; all roles weigh the
	// same.
	Weight func(role int) int

	// DisableRebalance lets a leader keep its roles for as long as it lives and is healthy. By
	// default a leader with more roles than its share hands over the surplus in batches, and hands
	// over any role for which another member is preferred. It hands over only to members that have been
	// present and healthy for 15 s (sooner in a new group), moves a role at most once in 30 s, and
	// tolerates a difference of a tenth. Rebalance shares out on demand. Default: false.
	DisableRebalance bool

	// Healthy checks whether this process should lead; nil means yes. The library calls it about
	// once a second, on a goroutine of its own, and never concurrently with itself. While it
	// returns an error, or while a call takes longer than 5 s, this process claims nothing
	// and gives up its roles in an orderly way (LeaderRevoked, ReasonUnhealthy). In non-exclusive
	// mode the process leaves the group and leads on for HeartbeatTimeout, so that other members
	// can take over. Close waits for a call in progress. Default: always healthy.
	Healthy func() error

	// Prepare gets this process ready to lead a role: it opens files, restores state, warms a cache. A leader
	// that hands a role over to this process (for balance, by Transfer, or because it closes, steps down or is
	// unhealthy) leads on until Prepare has returned nil here. If Prepare returns an error, panics or ends its
	// goroutine, the leader keeps the role if it can, and otherwise gives it to another member.
	//
	// A role may also be led unprepared: if its leader died or does not know Prepare, in a new group, and if
	// half of the leader's DrainTimeout is over. Its new leader must then prepare it when it leads; package
	// shards does that.
	//
	// ctx does not end when Prepare returns nil: it lasts for as long as this process is to keep what it has
	// prepared for a later term. When ctx ends, context.Cause is ErrLed if this process leads the role now, perhaps
	// before Prepare has returned. Otherwise it wraps ErrNotLed, and what is prepared is to be given up. Each call
	// has a goroutine of its own, and at most MaxPrepares run at once; a call that goes on after the end of ctx
	// counts until it returns. Close waits for all calls. Prepare needs Mode Exclusive and Open nomination. Default:
	// none; roles are taken unprepared.
	Prepare func(ctx context.Context, role int) error

	// MaxPrepares is how many calls of Prepare may run at once. From 1 to 1,000. Default: 16.
	MaxPrepares int

	// PrepareTimeout limits one call of Prepare: after that, ctx ends and the call has failed. A leader that can
	// keep the role waits that long for a call, and one that cannot waits for half of its DrainTimeout. From 100 ms
	// to ten minutes. Default: 30 s.
	PrepareTimeout time.Duration

	// Standby lets this process prepare roles in case their leaders die: each role below 131,072 is prepared at
	// one member with Standby that does not lead it. If the leader dies, that member claims the role first. A
	// Prepare that failed is called again after 30 s. Standby needs Prepare. Default: false.
	Standby bool

	// The mode and the roles.

	// Mode is Exclusive or NonExclusive. All members of a group must use the same one. Default: Exclusive.
	Mode Mode

	// Roles is R, the number of roles; they are numbered from 0. Role j lives on partition j mod M.
	// In exclusive mode each role has its own leader and token, and one beat renews all roles that a
	// process leads on a partition. In non-exclusive mode all roles of a partition are led together.
	// Processes may have different values of R for a while: each leads only the roles that it knows.
	// SetRoles changes R at run time. At most 1,000,000; docs/tuning.md#many-roles says what a million
	// roles need. Default: 1.
	Roles int

	// How long leadership lasts without evidence, and how long the application may take.

	// HeartbeatTimeout is T: leadership ends when its newest evidence is this old (0.9 T in exclusive mode).
	//
	// Exclusive mode: from 100 ms to 60 s; default 5 s. The upper limit is a constant of the
	// protocol: a process that knows nothing of the log waits that long, because a leader that it
	// has not heard may use that value.
	//
	// Non-exclusive mode: longer than the group's session timeout plus two broadcast intervals, at
	// most 24 h; default three session timeouts (18 s, or 135 s with group.protocol=consumer). If it is
	// shorter than a session and a rebalance together, a join, a leave or a cut may leave a role without
	// a leader; New logs a warning with the least value that avoids that.
	HeartbeatTimeout time.Duration

	// HeartbeatInterval is the time between beats.
	//
	// Exclusive mode: only holders beat. At least HeartbeatTimeout/1000 and 1 ms; at most 0.225
	// HeartbeatTimeout, a quarter of the time for which a holder leads without a new beat (0.9
	// HeartbeatTimeout); default HeartbeatTimeout/5.
	//
	// Non-exclusive mode: every process beats, at this interval multiplied by GroupsOnTopic. At
	// least 1 ms, and short enough for the rule of HeartbeatTimeout; default HeartbeatTimeout/20.
	HeartbeatInterval time.Duration

	// MaxPulseInterval is how long the application may go without calling Pulse before it counts
	// as hung. A hung process stops beating and leaves the group, so that another process takes
	// over. A pending Pulse, a running Lead and a barrier that has not returned count as pulses: if the
	// barrier or a function of Lead may hang, let Healthy notice that. At two thirds of this time a
	// warning is logged. At most 24 h. Default: 30 s.
	MaxPulseInterval time.Duration

	// DrainTimeout limits how long the application may take to finish after LeaderRevoked while
	// its successor waits. If this process cannot keep its roles (Close, StepDown, Healthy) and successors have
	// Prepare, DrainTimeout limits the time for both. Prepare has at most half of it; then the role is given up
	// unprepared, so the application has at least the other half. At most 24 h. Default: 10 s.
	DrainTimeout time.Duration

	// MaxClockDrift is ρ: the largest rate error, as a fraction, of the hardware clock of any
	// member (CLOCK_MONOTONIC_RAW on Linux, the monotonic clock elsewhere). Corrections by a time
	// daemon do not count, and clocks need not be synchronised. All members of a group must use
	// the same value. At most 0.2. Default: 0.0005 (500 ppm).
	MaxClockDrift float64

	// Kafka: the client, the log-in and the topic.

	// KafkaConfig is passed to the Kafka clients: bootstrap.servers, security, timeouts,
	// group.instance.id, partition.assignment.strategy, group.protocol and so on. The library adds
	// timeouts tuned for brokers that fall silent; your own values win. Properties that the
	// protocol depends on (acks, group.id, auto.offset.reset, enable.auto.commit and a few more) are
	// refused if yours differ. Secrets are never logged. Default: bootstrap.servers=localhost:9092.
	KafkaConfig KafkaConfigMap

	// LoginToken supplies tokens for SASL/OAUTHBEARER where the properties sasl.oauthbearer.* cannot
	// (docs/security.md). It returns a token and when that expires. The library asks for the next
	// one when four fifths of the token's lifetime have passed, one call at a time, with 10 s to
	// answer. All clients of a Neli share the token. Close ends the context of a call in progress,
	// and waits for the call.
	//
	// An error is logged, counted (Stats.LoginFailures) and retried, while the former token stays
	// in use. Before the first login, an error that is ErrAccess, an expired token, and a token
	// without expiry are fatal. KafkaConfig needs security.protocol SASL_SSL (or SASL_PLAINTEXT,
	// which sends tokens in clear text). Default: none.
	LoginToken func(context.Context) (kafka.Token, error)

	// Provider makes the Kafka clients, or replaces Kafka by small logs (kafka.SmallLogs).
	// Default: confluent-kafka-go, which needs cgo; the build tag neli_nolibrdkafka leaves it out
	// of the binary. Module github.com/goneli/neli/franz has a Provider in pure Go
	// (docs/clients.md).
	Provider kafka.Provider

	// LeaderTopic is the topic that carries the election. 1 to 249 of a–z, A–Z, 0–9, '.', '_' and
	// '-'. Default: LeaderGroupID + ".neli".
	LeaderTopic string

	// DisableTopicCreation leaves it to you to create LeaderTopic. Nobody leads until it exists.
	// Default: false; a missing topic is created.
	DisableTopicCreation bool

	// Partitions is M, the number of partitions with which a missing topic is created. An existing
	// topic keeps its number. At most 10,000. Default: 1.
	Partitions int

	// Logs, 3 or 5, runs the election on a majority of that many logs instead of on one replicated
	// log. Each log is a partition with a single replica, on a broker of its own, and in a rack of
	// its own where there are racks. A broker may then crash without ending any term.
	//
	// This has costs: monitoring complains about partitions with one replica, and tokens are ballots
	// (see kafka.SmallLogs), which ascend only while the wall clocks of all members are accurate
	// to half of HeartbeatTimeout. Exclusivity does not depend on that. docs/tuning.md says when to use Logs.
	//
	// The topic's name is LeaderTopic followed by Logs, HeartbeatTimeout and MaxClockDrift
	// ("app.neli.logs-3.t-500ms.rho-0.0005"). Members that differ in one of these use different
	// topics and would lead side by side, so change them only after all members have been stopped
	// for HeartbeatTimeout. A missing topic is created; ErrTopicPlacement says what is wrong with
	// an existing one. Do not reassign its partitions while members live.
	//
	// Logs cannot be combined with Partitions, nor with a Provider that implements kafka.SmallLogs.
	// Default: 0, one log with the topic's replication; 1 means the same.
	Logs int

	// GroupsOnTopic is the number of non-exclusive groups that share the topic. The broadcasts of any
	// group keep all partitions alive, so each group may send less often. At most 1,000. Default: 1.
	GroupsOnTopic int

	// Operations: what people ask for, watch and repair.

	// Requests decides on requests from other processes (Ask, and the commands neli transfer,
	// neli step-down and neli rebalance). If it returns nil, this process does what Transfer, StepDown or Rebalance do. If it
	// returns an error, the process keeps its roles, and the error's text goes to the requester
	// through the topic: put no secrets in it.
	//
	// The library calls it only for roles that this process leads, for one request at a time, at
	// most once a second on average and in bursts of at most four, on a goroutine of its own. That
	// goroutine carries out an accepted request before it takes the next one. Excess requests are
	// dropped. Requesters retry for 30 s and then report that there was no answer. A call that takes two
	// thirds of MaxPulseInterval is logged. Close waits for a call in progress.
	//
	// Nothing in a request is authenticated, including the requester's name: accept only what any
	// principal that can write to the topic may ask. Default: none; all requests are refused.
	Requests func(Request) error

	// Sentinel is the path of the socket of a sentinel on this machine (RunSentinel, or the
	// command neli sentinel). When this process dies, the sentinel proves it by a pidfd and
	// releases its roles: another process leads within round trips instead of after
	// HeartbeatTimeout.
	//
	// A sentinel that is missing or refuses is never fatal. A crash then costs HeartbeatTimeout,
	// as Stats.Sentinel and a warning report. Only the sentinel's user and root may be able to
	// write to the socket's directory, and also to the directories above it unless the sentinel runs
	// as this process's user or as root. Linux 5.3 or later; refused elsewhere. docs/sentinel.md says when to
	// use it. Default: $NELI_SENTINEL.
	Sentinel string

	// TokenBase is added to every fencing token that this process returns: Token, Term.Token,
	// Leadership.Token, Holder.Token. On one replicated log tokens are offsets: they start again
	// from 0 when the leader topic is created anew or moved to another cluster, and they may go
	// back when it is given more partitions while all members are stopped, since roles then move to
	// other logs. A resource that remembers the highest token would refuse the rightful leader from
	// then on. In each of these cases raise TokenBase above the highest token ever returned, before
	// the first member starts. All members of a group must use the same value. Between 0 and 2^62.
	// Default: 0.
	TokenBase int64

	// Logger receives changes of leadership at Info, trouble at Warn, the error that ends this Neli
	// and contradictions between members at Error, and protocol detail at Debug. Messages are
	// constant; the data is in attributes, and every line has group and name (docs/runbook.md lists
	// them).
	//
	// The handler gets lines on a goroutine of its own, one at a time, in order. Only Close waits for it, and
	// a Neli that fails, the latter for a second at most. If it blocks, up to 1,024 lines wait and later ones are
	// dropped; if it panics, the line is lost. Stats counts both, and a line reports them. Lines have
	// the time of what they report. Those of the last instant are lost if the process ends without
	// Close. Default: discard everything, including the warning that no broker was reached.
	Logger *slog.Logger
}
