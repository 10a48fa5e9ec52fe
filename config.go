package neli

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v5"

	"github.com/goneli/neli/internal/clock"
)

// KafkaConfigMap holds librdkafka's configuration properties by their own names.
// Values are strings, booleans or integers.
type KafkaConfigMap map[string]any

// Mode says how many leaders a role may have.
type Mode int

const (
	// Exclusive: at most one leader at every instant, with a fencing token. A
	// failed leader is missed for about HeartbeatTimeout. (fast NELI, with the
	// lease in the log)
	Exclusive Mode = iota
	// NonExclusive: at least one leader; two may overlap while leadership moves.
	// (NELI)
	NonExclusive
)

func (m Mode) String() string { return nameOf(int(m), "exclusive", "non-exclusive") }

// MarshalText returns "exclusive" or "non_exclusive", as metrics and JSON have it.
func (m Mode) MarshalText() ([]byte, error) {
	return textOf("Mode", int(m), "exclusive", "non_exclusive")
}

// UnmarshalText reads what MarshalText wrote.
func (m *Mode) UnmarshalText(b []byte) error {
	return ofText(m, "Mode", b, "exclusive", "non_exclusive")
}

// Nomination says who may claim a role in exclusive mode.
type Nomination int

const (
	// Open: any process. No consumer group at all; a crashed leader is replaced
	// HeartbeatTimeout after its last beat. The members share the roles out among
	// themselves, by Priority or Preference if there is one: see Rebalance.
	Open Nomination = iota
	// Assigned: the process to which the consumer group assigned the role's
	// partition, with all roles there that it knows of. The group spreads partitions
	// over its members; a crashed leader is replaced when its session has timed out.
	Assigned
)

func (n Nomination) String() string { return nameOf(int(n), "open", "assigned") }

// MarshalText returns "open" or "assigned".
func (n Nomination) MarshalText() ([]byte, error) {
	return textOf("Nomination", int(n), "open", "assigned")
}

// UnmarshalText reads what MarshalText wrote.
func (n *Nomination) UnmarshalText(b []byte) error {
	return ofText(n, "Nomination", b, "open", "assigned")
}

// Rebalance says whether leaders make room for others.
type Rebalance int

const (
	// RebalanceOn: a leader that has more roles than its share hands over what is too
	// much, in batches, and any role for which a preferred member has come. It makes
	// room only for members that have been there, healthy, for 15 s, and no role that
	// was moved moves again within 30 s. Up to a tenth of difference stays.
	RebalanceOn Rebalance = iota
	// RebalanceOff: a leader stays as long as it lives and is healthy.
	RebalanceOff
)

func (r Rebalance) String() string { return nameOf(int(r), "on", "off") }

func nameOf(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return strconv.Itoa(i)
	}
	return names[i]
}

// textOf is nameOf for who takes no number.
func textOf(what string, i int, names ...string) ([]byte, error) {
	if i < 0 || i >= len(names) {
		return nil, fmt.Errorf("neli: %s: %d is none", what, i)
	}
	return []byte(names[i]), nil
}

// ofText is the inverse of textOf.
func ofText[E ~int](e *E, what string, b []byte, names ...string) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return fmt.Errorf("neli: %s: %q: must be one of %s", what, b, strings.Join(names, ", "))
	}
	*e = E(i)
	return nil
}

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

	// Rebalance says whether a leader hands roles over while it lives, so that
	// all members have a share and preferred ones lead: RebalanceOn or RebalanceOff.
	// Open nomination only. Default: RebalanceOn.
	Rebalance Rebalance

	// Healthy is this process's own check of whether it should lead, nil if so. It is
	// called about once a second, never concurrently with itself, on a goroutine of
	// its own. While it returns an error this process claims nothing, and gives up
	// what it has in an orderly way (LeaderRevoked, ReasonUnhealthy); so it does
	// while a call has not returned for 5 s. In non-exclusive mode it leaves the group,
	// and leads on for T, so that others have taken over by then. Close waits for a call
	// that is under way. Default: always healthy.
	Healthy func() error

	// Observer makes this process watch who leads without ever contending: Holder,
	// Watch and Members work, Pulse, Background and Lead return ErrObserver, and no
	// barrier is called. It writes nothing, joins no group and creates no topic, so
	// it needs no right but READ on LeaderTopic. Roles, HeartbeatTimeout and
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
	// and nobody says so, and tokens are ballots (see SmallLogs): they go up as long as
	// the wall clocks of all members are within half of HeartbeatTimeout of each other,
	// which exclusivity does not need. docs/tuning.md says when to take it.
	//
	// The topic's name is LeaderTopic, completed with Logs, HeartbeatTimeout and
	// MaxClockDrift ("app.neli.logs-3.t-500ms.rho-0.0005"): members that differ in one of
	// these do not meet, and would lead side by side, so change them with all members
	// stopped for HeartbeatTimeout. The topic is created so if it is missing;
	// ErrTopicPlacement says what is wrong with one that is there. While members live its
	// partitions must not be reassigned. Exclusive mode and Open nomination only. Not
	// together with Partitions, nor with a Provider that has SmallLogs. Default: 0, which
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

	// Logger receives changes of leadership at Info, trouble at Warn, protocol
	// detail at Debug. Default: discard.
	Logger *slog.Logger

	// Provider makes the Kafka clients, or gives small logs in place of Kafka
	// (SmallLogs). Default: confluent-kafka-go, which needs cgo, and is left out of a
	// binary by the build tag neli_nolibrdkafka. Module github.com/goneli/neli/franz
	// has another one, in Go: docs/clients.md.
	Provider Provider
}

// settings is a Config with its defaults filled in and its values checked.
type settings struct {
	group, topic, name string
	instance           string // random: this Neli among all
	createTopic        bool
	observer           bool
	mode               Mode
	nomination         Nomination
	roles, partitions  int
	timeout            time.Duration // T
	every              time.Duration // between beats
	broadcast          time.Duration // B
	maxPulse           time.Duration
	drain              time.Duration
	successorWait      time.Duration // how long a leaving holder waits for a successor
	helloPause         time.Duration // how long the group may take to tell a woken process of its lost session
	handoverOverlap    time.Duration // how long a leaving process keeps leading, non-exclusive
	starvedAfter       time.Duration // without a record on an assigned partition: leave the group, non-exclusive
	starvedPause       time.Duration // and stay away for this long
	drift              float64
	tokenBase          int64
	kafka              map[string]string                   // the user's properties
	secrets            secrets                             // among them
	random             func(n time.Duration) time.Duration // in [0, n)
	spread             float64                             // of the pauses between retries
	priority           int
	preference         func(Member, int) int
	rebalance          bool
	small              bool // roles are led on a majority of small logs
	logs               int  // in Kafka, with a replica each: 3, 5, or 0 for none
	healthy            func() error
	logger             *slog.Logger
	throttling         throttling
}

// silence is W(T): for how long nothing must have been read of a holder with the same T.
func (s *settings) silence() time.Duration { return clock.Wait(s.timeout, s.drift) }

const (
	defaultTimeout  = 5 * time.Second
	minTimeout      = 100 * time.Millisecond
	maxTimeout      = time.Minute // Tmax, of exclusive mode: a constant of the protocol, the same in all versions
	defaultMaxPulse = 30 * time.Second
	defaultDrain    = 10 * time.Second
	defaultDrift    = 0.0005
	maxDrift        = 0.2
	maxTopicName    = 249
	maxPartitions   = 10_000
	maxRoles        = 1_000_000
	maxGroups       = 1_000
	maxDuration     = 24 * time.Hour
	maxNameLength   = 256
	maxPriority     = 1_000_000
	maxTokenBase    = 1 << 62 // an offset can be added without an overflow
)

// resolve fills in defaults and checks everything; the error lists all faults.
func (c Config) resolve() (*settings, error) {
	var f faults
	s := &settings{
		group:       or(c.LeaderGroupID, binaryName()),
		instance:    newID(),
		createTopic: !c.DisableTopicCreation && !c.Observer,
		observer:    c.Observer,
		mode:        c.Mode,
		nomination:  c.Nomination,
		roles:       or(c.Roles, 1),
		partitions:  or(c.Partitions, 1),
		maxPulse:    or(c.MaxPulseInterval, defaultMaxPulse),
		drain:       or(c.DrainTimeout, defaultDrain),
		drift:       or(c.MaxClockDrift, defaultDrift),
		tokenBase:   c.TokenBase,
		random:      rand.N[time.Duration],
		spread:      backoff.DefaultRandomizationFactor,
		priority:    c.Priority,
		preference:  c.Preference,
		rebalance:   c.Rebalance == RebalanceOn,
		healthy:     c.Healthy,
		logger:      c.Logger,
	}
	s.topic = or(c.LeaderTopic, s.group+".neli")
	s.name = or(c.Name, defaultName())
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	c.checkNames(s, &f)
	f.check(c.Mode == Exclusive || c.Mode == NonExclusive, "Mode", int(c.Mode), "must be Exclusive or NonExclusive")
	c.checkLogs(s, &f)
	f.check(c.Nomination == Assigned || c.Nomination == Open, "Nomination", int(c.Nomination), "must be Assigned or Open")
	f.check(c.Rebalance == RebalanceOn || c.Rebalance == RebalanceOff, "Rebalance", int(c.Rebalance), "must be RebalanceOn or RebalanceOff")
	f.check(c.Priority >= -maxPriority && c.Priority <= maxPriority, "Priority", c.Priority,
		fmt.Sprintf("must be between %d and %d", -maxPriority, maxPriority))
	f.check(!c.Observer || c.Mode == Exclusive, "Observer", c.Observer,
		"needs Mode Exclusive: the records of the other one do not tell who leads")
	f.check(s.roles >= 1 && s.roles <= maxRoles, "Roles", c.Roles, fmt.Sprintf("must be between 1 and %d", maxRoles))
	f.check(s.partitions >= 1 && s.partitions <= maxPartitions, "Partitions", c.Partitions,
		fmt.Sprintf("must be between 1 and %d", maxPartitions))
	f.check(c.GroupsOnTopic >= 0 && c.GroupsOnTopic <= maxGroups, "GroupsOnTopic", c.GroupsOnTopic,
		fmt.Sprintf("must be between 1 and %d", maxGroups))
	f.check(s.maxPulse > 0 && s.maxPulse <= maxDuration, "MaxPulseInterval", c.MaxPulseInterval, "must be positive and at most 24h")
	f.check(s.drain > 0 && s.drain <= maxDuration, "DrainTimeout", c.DrainTimeout, "must be positive and at most 24h")
	f.check(c.TokenBase >= 0 && c.TokenBase <= maxTokenBase, "TokenBase", c.TokenBase,
		fmt.Sprintf("must be between 0 and %d", int64(maxTokenBase)))
	f.check(s.drift >= 0 && s.drift <= maxDrift, "MaxClockDrift", c.MaxClockDrift,
		fmt.Sprintf("must be a fraction between 0 and %v", maxDrift))
	s.kafka = checkProperties(c.KafkaConfig, &f)
	s.secrets = secretsOf(s.kafka)
	s.logger = s.secrets.logger(s.logger)
	c.resolveTimes(s, &f)
	if s.logs > 0 {
		s.topic = smallTopicName(s.topic, s.logs, s.timeout, s.drift)
		f.check(len(s.topic) <= maxTopicName, "LeaderTopic", s.topic, fmt.Sprintf("must be at most %d bytes, completed for Logs", maxTopicName))
		idempotent := or(s.kafka["enable.idempotence"], "false")
		f.check(strings.EqualFold(idempotent, "false"), "KafkaConfig[enable.idempotence]", idempotent,
			"must be false with Logs: a log that has forgotten would end the producer")
	}
	return s, f.err()
}

// checkLogs finds out what the roles are led on, and what does not go with that.
func (c Config) checkLogs(s *settings, f *faults) {
	if _, s.small = c.Provider.(SmallLogs); s.small {
		f.check(c.Mode == Exclusive, "Mode", c.Mode.String(),
			"must be Exclusive with small logs: NonExclusive needs a consumer group, and there is no broker")
		f.check(c.Nomination == Open, "Nomination", c.Nomination.String(),
			"must be Open with small logs: Assigned needs a consumer group, and there is no broker")
		f.check(len(c.KafkaConfig) == 0, "KafkaConfig", "",
			"must be empty with small logs: there is no broker")
		f.check(c.Logs == 0, "Logs", c.Logs, "must be 0 with small logs: the Provider says how many there are")
		return
	}
	f.check(c.Logs == 0 || c.Logs == 1 || c.Logs == 3 || c.Logs == 5, "Logs", c.Logs,
		"must be 3 or 5, or 0 for one replicated log: of 3 one broker may fail, of 5 two")
	if c.Logs < 2 {
		return
	}
	s.small, s.logs = true, c.Logs
	f.check(c.Mode == Exclusive, "Mode", c.Mode.String(),
		"must be Exclusive with Logs: NonExclusive has no lease that a log could carry")
	f.check(c.Nomination == Open, "Nomination", c.Nomination.String(),
		"must be Open with Logs: Assigned claims by partitions, and here each has all roles")
	f.check(c.Partitions == 0 || c.Partitions == 1, "Partitions", c.Partitions,
		"must be 0 or 1 with Logs: each log has one partition, with all roles")
}

func (c Config) checkNames(s *settings, f *faults) {
	f.check(s.group != "" && len(s.group) <= 255 && utf8.ValidString(s.group), "LeaderGroupID", s.group,
		"must be 1 to 255 bytes of UTF-8")
	f.check(c.LeaderGroupID != "" || !commonName(s.group), "LeaderGroupID", "",
		fmt.Sprintf("defaults to the name of the binary, and %q is one that many programs have, which would share a leader: set LeaderGroupID", s.group))
	f.check(topicName.MatchString(s.topic) && s.topic != "." && s.topic != "..", "LeaderTopic", s.topic,
		"must be 1 to 249 of a–z, A–Z, 0–9, '.', '_' and '-', and neither '.' nor '..'")
	f.check(len(s.name) <= maxNameLength && utf8.ValidString(s.name), "Name", s.name,
		fmt.Sprintf("must be at most %d bytes of UTF-8", maxNameLength))
}

// resolveTimes derives the intervals and checks them against each other.
func (c Config) resolveTimes(s *settings, f *faults) {
	session := sessionTimeout(s.kafka)
	groups := time.Duration(min(max(1, c.GroupsOnTopic), maxGroups))
	if c.HeartbeatTimeout > maxDuration || c.HeartbeatInterval > maxDuration {
		f.check(c.HeartbeatTimeout <= maxDuration, "HeartbeatTimeout", c.HeartbeatTimeout, "must be at most 24h")
		f.check(c.HeartbeatInterval <= maxDuration, "HeartbeatInterval", c.HeartbeatInterval, "must be at most 24h")
		return // the sums below could overflow
	}
	if c.Mode == NonExclusive {
		s.timeout = or(c.HeartbeatTimeout, 3*session)
		s.every = or(c.HeartbeatInterval, s.timeout/20)
		s.broadcast = s.every * groups
		f.check(s.timeout > session+2*s.broadcast, "HeartbeatTimeout", s.timeout, fmt.Sprintf(
			"must exceed the session timeout (%v) plus twice HeartbeatInterval (%v) × GroupsOnTopic (%d), "+
				"or a process that is cut off lapses before another is assigned", session, s.every, groups))
	} else {
		s.timeout = or(c.HeartbeatTimeout, defaultTimeout)
		s.every = or(c.HeartbeatInterval, s.timeout/5)
		s.broadcast = s.every
		f.check(s.timeout >= minTimeout, "HeartbeatTimeout", s.timeout, fmt.Sprintf("must be at least %v", minTimeout))
		f.check(s.timeout <= maxTimeout, "HeartbeatTimeout", s.timeout, fmt.Sprintf(
			"must be at most %v in exclusive mode: a process that knows nothing of the log waits that long for a leader "+
				"that it has not heard", maxTimeout))
		f.check(s.every <= s.timeout*9/40, "HeartbeatInterval", s.every, fmt.Sprintf(
			"must be at most %v, 0.225 of HeartbeatTimeout (%v)", s.timeout*9/40, s.timeout))
		f.check(s.every >= s.timeout/1000, "HeartbeatInterval", s.every, fmt.Sprintf(
			"must be at least a thousandth of HeartbeatTimeout (%v)", s.timeout))
	}
	f.check(s.every >= time.Millisecond, "HeartbeatInterval", s.every, "must be at least 1ms")
	s.every, s.broadcast = max(s.every, time.Millisecond), max(s.broadcast, time.Millisecond)
	// Long enough for the group to hear of a leaver (at a heartbeat), to rebalance
	// twice (cooperative) and for the successor's word to arrive.
	s.successorWait = 3*time.Second + 2*heartbeatInterval(s.kafka)
	s.helloPause = time.Second + 2*heartbeatInterval(s.kafka)
	// A member that receives nothing makes room while it still leads.
	s.starvedPause = 3*time.Second + 2*s.broadcast
	s.starvedAfter = max(session, s.timeout-s.starvedPause)
	// A rebalance may have to wait for the session of a dead member to end, and the
	// others hear of the next one at a heartbeat.
	s.handoverOverlap = min(s.timeout, max(s.successorWait, min(session, 10*time.Second)+s.helloPause)+2*s.broadcast)
	if s.mode == Exclusive && s.nomination == Open {
		s.successorWait = max(answerWait, s.every)
	}
}

// answerWait is how long a holder with Open nomination waits at least for the process
// that is to lead next to say that it is there: two round trips, with much to spare. Groups
// whose beats are further apart may have slower round trips, too, and wait for an interval.
const answerWait = time.Second

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// or returns v, or d when v is zero.
func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

func binaryName() string {
	name := filepath.Base(os.Args[0])
	return regexp.MustCompile(`[^a-zA-Z0-9._-]`).ReplaceAllString(name, "-")
}

// commonName reports whether a binary's name says nothing of what it is.
func commonName(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, ".exe"))
	return name == "main" || name == "server" || name == "app" || strings.HasPrefix(name, "__debug_bin")
}

func defaultName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s_%d_%d", host, os.Getpid(), time.Now().Unix())
}
