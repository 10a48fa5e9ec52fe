package neli

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v5"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/freeze"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/internal/login"
	"github.com/goneli/neli/internal/logqueue"
	"github.com/goneli/neli/internal/redact"
	"github.com/goneli/neli/kafka"
)

// settings is a Config with its defaults filled in and its values checked.
type settings struct {
	config             Config // for the method of that name
	group, topic, name string
	instance           string // random id of this Neli
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
	helloPause         time.Duration // how long the group may take to tell a woken process that its session is lost
	handoverOverlap    time.Duration // non-exclusive: how long a leaving process leads on
	starvedAfter       time.Duration // non-exclusive: leave the group after this long without a record on an assigned partition
	goneAfter          time.Duration // non-exclusive: another member of which no record arrived for this long is gone
	leastHandOver      time.Duration // non-exclusive: the least T with which every hand-over leaves no gap
	starvedPause       time.Duration // how long a member that leaves the group stays away, so that others get its partitions
	drift              float64
	tokenBase          int64
	kafka              map[string]string                   // the user's properties
	secrets            redact.Secrets                      // in kafka
	random             func(n time.Duration) time.Duration // in [0, n)
	spread             float64                             // of the pauses between retries
	priority           int
	preference         func(Member, int) int
	rebalance          bool
	small              bool // on a majority of small logs
	logs               int  // Config.Logs: 3, 5, or 0
	healthy            func() error
	requests           func(Request) error // nil: all are refused
	logger             *slog.Logger        // queues its lines
	lines              *logqueue.Queue     // the queue of logger; nil if all lines are discarded
	provided           bool                // Config.Provider is set
	watched            watched             // by a sentinel
	throttling         kafkalog.Throttling
	contact            kafkalog.Contact
	refusals           kafkalog.Refusals
	pace               kafkalog.Pace
	frozen             *freeze.State // by tests; nil otherwise
	replaced           atomic.Uint64 // clients that stood still
	tokens             *login.Source // of Config.LoginToken; nil without
	loginFailures      atomic.Uint64
	tokenTrouble       kafkalog.Limiter
}

// silence is W(T): how long a holder with the same T must have been silent before others claim.
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

// resolve fills in defaults and checks all fields. The error lists all faults.
func (c Config) resolve() (*settings, error) {
	s, f := c.check()
	return s, f.err()
}

// check is resolve that returns the faults, so that more can be added.
func (c Config) check() (*settings, *faults) {
	f := &faults{}
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
		random:      randomBelow,
		spread:      backoff.DefaultRandomizationFactor,
		priority:    c.Priority,
		preference:  c.Preference,
		rebalance:   !c.DisableRebalance,
		healthy:     c.Healthy,
		requests:    c.Requests,
		provided:    c.Provider != nil,
	}
	s.topic = or(c.LeaderTopic, s.group+".neli")
	s.name = or(c.Name, defaultName())
	c.checkNames(s, f)
	f.check(c.Mode == Exclusive || c.Mode == NonExclusive, "Mode", int(c.Mode), "must be Exclusive or NonExclusive")
	c.checkLogs(s, f)
	f.check(c.Nomination == NominationAssigned || c.Nomination == NominationOpen, "Nomination", int(c.Nomination), "must be NominationOpen or NominationAssigned")
	f.check(c.Priority >= -maxPriority && c.Priority <= maxPriority, "Priority", c.Priority,
		fmt.Sprintf("must be between %d and %d", -maxPriority, maxPriority))
	f.check(!c.Observer || c.Mode == Exclusive, "Observer", c.Observer,
		"needs Mode Exclusive: the records of the other one do not tell who leads")
	f.check(c.Requests == nil || c.Mode == Exclusive, "Requests", "", "needs Mode Exclusive: in the other one nothing is handed over")
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
	s.kafka = checkProperties(c.KafkaConfig, s.group, f)
	c.checkLogin(s, f)
	s.secrets = redact.Of(s.kafka)
	s.logger, s.lines = logqueue.New(s.secrets.Logger(or(c.Logger, slog.New(slog.DiscardHandler))).Handler(),
		"group", s.group, "name", s.name) // so that all lines have these
	c.resolveTimes(s, f)
	if s.logs > 0 {
		s.topic = kafkalog.SmallTopicName(s.topic, s.logs, s.timeout, s.drift)
		f.check(len(s.topic) <= maxTopicName, of(c.LeaderTopic != "", "LeaderTopic", "LeaderGroupID"), s.topic, fmt.Sprintf("must be at most %d bytes, completed for Logs", maxTopicName))
		idempotent := or(s.kafka["enable.idempotence"], "false")
		f.check(strings.EqualFold(idempotent, "false"), "KafkaConfig[enable.idempotence]", idempotent,
			"must be false with Logs: a log that has forgotten would end the producer")
	}
	c.resolveSentinel(s, f)
	s.config = c.effective(s)
	return s, f
}

// effective returns c with its defaults, and without what may hold secrets.
func (c Config) effective(s *settings) Config {
	c.LeaderGroupID, c.LeaderTopic, c.Name = s.group, or(c.LeaderTopic, s.group+".neli"), s.name
	c.Roles, c.Partitions, c.GroupsOnTopic = s.roles, s.partitions, max(1, c.GroupsOnTopic)
	c.HeartbeatTimeout, c.HeartbeatInterval = s.timeout, s.every
	c.MaxPulseInterval, c.DrainTimeout, c.MaxClockDrift = s.maxPulse, s.drain, s.drift
	c.Sentinel = or(c.Sentinel, s.watched.socket)
	c.KafkaConfig, c.LoginToken = nil, nil
	return c
}

// randomBelow returns a random duration in [0, n).
func randomBelow(n time.Duration) time.Duration { return rand.N(n) }

// checkLogs decides on which kind of logs the roles are led, and checks the fields that depend on
// that.
func (c Config) checkLogs(s *settings, f *faults) {
	if _, s.small = c.Provider.(kafka.SmallLogs); s.small {
		f.check(c.Mode == Exclusive, "Mode", c.Mode.String(),
			"must be Exclusive with small logs: NonExclusive needs a consumer group, and there is no broker")
		f.check(c.Nomination == NominationOpen, "Nomination", c.Nomination.String(),
			"must be Open with small logs: Assigned needs a consumer group, and there is no broker")
		f.check(len(c.KafkaConfig) == 0, "KafkaConfig", "",
			"must be empty with small logs: there is no broker")
		f.check(c.LoginToken == nil, "LoginToken", "", "must be empty with small logs: there is no broker to log in to")
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
	f.check(c.Nomination == NominationOpen, "Nomination", c.Nomination.String(),
		"must be Open with Logs: Assigned claims by partitions, and here each has all roles")
	f.check(c.Partitions == 0 || c.Partitions == 1, "Partitions", c.Partitions,
		"must be 0 or 1 with Logs: each log has one partition, with all roles")
}

func (c Config) checkNames(s *settings, f *faults) {
	f.check(s.group != "" && len(s.group) <= 255 && utf8.ValidString(s.group), "LeaderGroupID", s.group,
		"must be 1 to 255 bytes of UTF-8")
	f.check(c.LeaderGroupID != "" || !commonName(s.group), "LeaderGroupID", "",
		fmt.Sprintf("defaults to the name of the binary, and %q is one that many programs have, which would share a leader: set LeaderGroupID", s.group))
	const rule = "must be 1 to 249 of a–z, A–Z, 0–9, '.', '_' and '-', and neither '.' nor '..'"
	named := topicName.MatchString(s.topic) && s.topic != "." && s.topic != ".."
	if c.LeaderTopic != "" {
		f.check(named, "LeaderTopic", s.topic, rule)
	} else if !f.has("LeaderGroupID") {
		f.check(named, "LeaderGroupID", s.group, fmt.Sprintf("names the topic %q, which %s: choose another, or set LeaderTopic", s.topic, rule))
	}
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
		s.every = or(c.HeartbeatInterval, max(s.timeout/20, time.Millisecond))
		s.broadcast = s.every * groups
		field, value, subject := c.timing(s, session)
		f.check(s.timeout > session+2*s.broadcast, field, value, fmt.Sprintf(
			subject+"must exceed the session timeout (%v) plus twice HeartbeatInterval (%v) × GroupsOnTopic (%d), "+
				"or a process that is cut off lapses before another is assigned", session, s.every, groups))
	} else {
		s.timeout = or(c.HeartbeatTimeout, defaultTimeout)
		s.every = or(c.HeartbeatInterval, s.timeout/5)
		s.broadcast = s.every
		f.check(s.timeout >= minTimeout, "HeartbeatTimeout", s.timeout, fmt.Sprintf("must be at least %v", minTimeout))
		f.check(s.timeout <= maxTimeout, "HeartbeatTimeout", s.timeout, fmt.Sprintf(
			"must be at most %v in exclusive mode: a process that knows nothing of the log waits that long for a leader "+
				"that it has not heard", maxTimeout))
		set := c.HeartbeatInterval != 0
		f.check(!set || s.every <= s.timeout*9/40, "HeartbeatInterval", s.every, fmt.Sprintf(
			"must be at most %v, 0.225 of HeartbeatTimeout (%v)", s.timeout*9/40, s.timeout))
		f.check(!set || s.every >= s.timeout/1000, "HeartbeatInterval", s.every, fmt.Sprintf(
			"must be at least a thousandth of HeartbeatTimeout (%v)", s.timeout))
	}
	if !s.observer && s.timeout >= minTimeout {
		s.checkDelays(f)
	}
	f.check(c.HeartbeatInterval == 0 || s.every >= time.Millisecond, "HeartbeatInterval", s.every, "must be at least 1ms")
	s.every, s.broadcast = max(s.every, time.Millisecond), max(s.broadcast, time.Millisecond)
	// Long enough for the group to learn of the leaver (at a heartbeat), to rebalance twice
	// (cooperative) and for the successor's record to arrive.
	s.successorWait = 3*time.Second + 2*heartbeatInterval(s.kafka)
	s.helloPause = time.Second + 2*heartbeatInterval(s.kafka)
	// A member that receives nothing leaves the group while it still leads. Others learn of that at
	// a heartbeat.
	s.starvedPause = 2*time.Second + 2*heartbeatInterval(s.kafka) + 2*s.broadcast
	s.starvedAfter = max(session, s.timeout-s.starvedPause)
	if s.timeout-session-2*s.broadcast < leastRebalance {
		// No other member could lead before V lapses. To leave earlier would only turn a stall of the log into a gap.
		s.starvedAfter = s.timeout
	}
	s.goneAfter = session + 2*s.broadcast
	if s.mode == NonExclusive && s.timeout > 2*s.broadcast {
		s.leastHandOver = c.leastHandOver(session, s)
	}
	// A rebalance may have to wait until a dead member's session ends. With the cooperative
	// assignor one is often under way already, and the leaver's partitions move in the next:
	// librdkafka takes a second for each of the two.
	s.handoverOverlap = min(s.timeout, min(session, 10*time.Second)+s.successorWait+2*s.broadcast)
	if s.kafka["group.instance.id"] != "" {
		// The group may keep the partitions of a static member that leaves until its session is
		// over, and gives them back to it if it returns earlier.
		s.starvedPause += session
		s.handoverOverlap = min(s.timeout, session+s.successorWait+2*s.broadcast)
	}
	if s.mode == Exclusive && s.nomination == NominationOpen {
		s.successorWait = max(answerWait, s.every)
	}
}

// timing returns which field a fault of non-exclusive mode's times names (one that the user has
// set), its value, and the beginning of the rule's text.
func (c Config) timing(s *settings, session time.Duration) (field string, value any, subject string) {
	subject = fmt.Sprintf("does not fit: HeartbeatTimeout (%v) ", s.timeout)
	switch {
	case c.HeartbeatTimeout != 0:
		return "HeartbeatTimeout", c.HeartbeatTimeout, ""
	case c.HeartbeatInterval != 0:
		return "HeartbeatInterval", c.HeartbeatInterval, subject
	case c.GroupsOnTopic > 1:
		return "GroupsOnTopic", c.GroupsOnTopic, subject
	}
	return "KafkaConfig[session.timeout.ms]", session.Milliseconds(), subject
}

// leastHandOver returns the least T with which a join, a leave or a cut leaves no role without a
// leader: a session, and all that a member stays away for when it makes room for another one. If
// B is not set, it grows with T.
func (c Config) leastHandOver(session time.Duration, s *settings) time.Duration {
	if c.HeartbeatInterval != 0 {
		return session + s.starvedPause
	}
	fixed := (session + s.starvedPause - 2*s.broadcast).Seconds()
	share := (2 * s.broadcast).Seconds() / s.timeout.Seconds() // that two B take of any T
	return time.Duration(math.Ceil(1000*fixed/(1-share)-0.001)) * time.Millisecond
}

// leastRebalance is the time below which no group rebalances: a member that learns of it at a
// heartbeat joins a second later at the latest (librdkafka looks that often).
const leastRebalance = time.Second

// answerWait is the least time for which a leaving holder with Open nomination waits for its
// successor's answer: two round trips with a large margin. Groups with longer beat intervals may
// have slower round trips, and wait for an interval.
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

// commonName reports whether many programs have a binary of this name.
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
