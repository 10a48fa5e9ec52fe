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
	"time"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v5"

	"github.com/goneli/neli/internal/freeze"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/login"
	"github.com/goneli/neli/internal/logqueue"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/redact"
	"github.com/goneli/neli/kafka"
)

// settings is a Config with its values checked, and what derives from it. It does not change once a Neli runs.
type settings struct {
	// Config has defaults in place of zero values. Its KafkaConfig, Logger and Logs are as given: use
	// kafka, logger and logs.
	Config
	topic           string                              // LeaderTopic, completed for Logs
	process         string                              // random id of this Neli
	broadcast       time.Duration                       // B
	successorWait   time.Duration                       // how long a leaving holder waits for a successor
	rejoinWait      time.Duration                       // how long the group may take to tell a woken process that its session is lost
	handoverOverlap time.Duration                       // non-exclusive: how long a leaving process leads on
	starvedAfter    time.Duration                       // non-exclusive: leave the group after this long without a record on an assigned partition
	goneAfter       time.Duration                       // non-exclusive: another member of which no record arrived for this long is gone
	leastHandOver   time.Duration                       // non-exclusive: the least T with which every hand-over leaves no gap
	absence         time.Duration                       // how long a member that leaves the group stays away, so that others get its partitions
	kafka           map[string]string                   // the user's properties
	secrets         redact.Secrets                      // in kafka
	random          func(n time.Duration) time.Duration // in [0, n)
	spread          float64                             // of the pauses between retries
	majority        bool                                // on a majority of small logs
	logs            int                                 // Logs if it is 3 or 5, else 0
	logger          *slog.Logger                        // queues its lines
	lines           *logqueue.Queue                     // the queue of logger; nil if all lines are discarded
	watched         watched                             // by a sentinel
	frozen          *freeze.State                       // by tests; nil otherwise
	tokens          *login.Source                       // of LoginToken; nil without
	weights         *placement.Weights                  // of the roles at the start; nil: all weigh the same
	health          *health                             // what changes
}

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
	s, f := c.check(os.Getenv(sentinelVariable))
	return s, f.err()
}

// check is resolve that returns the faults, so that more can be added. socket is the default of Sentinel.
func (c Config) check(socket string) (*settings, *faults) {
	s, f := &settings{Config: c, process: newID(), random: randomBelow, spread: backoff.DefaultRandomizationFactor, health: new(health)}, &faults{}
	s.Roles, s.Partitions, s.GroupsOnTopic = or(s.Roles, 1), or(s.Partitions, 1), or(s.GroupsOnTopic, 1)
	s.MaxPulseInterval, s.DrainTimeout = or(s.MaxPulseInterval, defaultMaxPulse), or(s.DrainTimeout, defaultDrain)
	s.MaxClockDrift = or(s.MaxClockDrift, defaultDrift)
	topicField := s.resolveNames(f)
	s.checkModes(f)
	s.checkRanges(f)
	s.checkPrepare(f)
	s.checkWeights(f)
	s.kafka = checkProperties(s.KafkaConfig, s.LeaderGroupID, f)
	s.checkLogin(f)
	s.secrets = redact.Of(s.kafka)
	s.logger, s.lines = logqueue.New(s.secrets.Logger(or(s.Logger, slog.New(slog.DiscardHandler))).Handler(),
		"group", s.LeaderGroupID, "name", s.Name) // so that all lines have these
	s.health.logger = s.logger
	if f, can := s.Provider.(freeze.Freezer); can {
		s.frozen = f.Frozen()
	}
	s.resolveTimes(f)
	s.completeTopic(topicField, f)
	s.resolveSentinel(socket, f)
	return s, f
}

// checkModes checks fields that do not go with each other.
func (s *settings) checkModes(f *faults) {
	f.check(s.Mode == Exclusive || s.Mode == NonExclusive, "Mode", int(s.Mode), "must be Exclusive or NonExclusive")
	s.checkLogs(f)
	f.check(s.Nomination == NominationAssigned || s.Nomination == NominationOpen, "Nomination", int(s.Nomination),
		"must be NominationOpen or NominationAssigned")
	f.check(!s.Observer || s.Mode == Exclusive, "Observer", s.Observer,
		"needs Mode Exclusive: the records of the other one do not tell who leads")
	const silent = "needs Mode Exclusive: the records of the other one say nothing"
	f.check(s.Advertise == "" || s.Mode != NonExclusive, "Advertise", "", silent)
	f.check(s.Zone == "" || s.Mode != NonExclusive, "Zone", "", silent)
	f.check(s.MaxRoles == 0 || s.Mode != NonExclusive && s.Nomination != NominationAssigned, "MaxRoles", s.MaxRoles,
		"needs Mode Exclusive and NominationOpen: else the consumer group decides who leads how much")
	f.check(s.Requests == nil || s.Mode == Exclusive, "Requests", "", "needs Mode Exclusive: in the other one nothing is handed over")
}

// checkRanges checks numbers by themselves.
func (s *settings) checkRanges(f *faults) {
	f.check(s.Priority >= -maxPriority && s.Priority <= maxPriority, "Priority", s.Priority,
		fmt.Sprintf("must be between %d and %d", -maxPriority, maxPriority))
	f.check(s.MaxRoles >= 0 && s.MaxRoles <= maxRoles, "MaxRoles", s.MaxRoles, fmt.Sprintf("must be between 1 and %d, or 0 for no limit", maxRoles))
	f.check(s.Roles >= 1 && s.Roles <= maxRoles, "Roles", s.Roles, fmt.Sprintf("must be between 1 and %d", maxRoles))
	f.check(s.Partitions >= 1 && s.Partitions <= maxPartitions, "Partitions", s.Partitions,
		fmt.Sprintf("must be between 1 and %d", maxPartitions))
	f.check(s.GroupsOnTopic >= 1 && s.GroupsOnTopic <= maxGroups, "GroupsOnTopic", s.GroupsOnTopic,
		fmt.Sprintf("must be between 1 and %d", maxGroups))
	f.check(s.MaxPulseInterval > 0 && s.MaxPulseInterval <= maxDuration, "MaxPulseInterval", s.MaxPulseInterval, "must be positive and at most 24h")
	f.check(s.DrainTimeout > 0 && s.DrainTimeout <= maxDuration, "DrainTimeout", s.DrainTimeout, "must be positive and at most 24h")
	f.check(s.TokenBase >= 0 && s.TokenBase <= maxTokenBase, "TokenBase", s.TokenBase,
		fmt.Sprintf("must be between 0 and %d", int64(maxTokenBase)))
	f.check(s.MaxClockDrift >= 0 && s.MaxClockDrift <= maxDrift, "MaxClockDrift", s.MaxClockDrift,
		fmt.Sprintf("must be a fraction between 0 and %v", maxDrift))
}

// completeTopic adds to the topic's name what all members of an election on Logs must have in common. field is
// the one from which the name derives.
func (s *settings) completeTopic(field string, f *faults) {
	s.topic = s.LeaderTopic
	if s.logs == 0 {
		return
	}
	s.topic = kafkalog.SmallTopicName(s.LeaderTopic, s.logs, s.HeartbeatTimeout, s.MaxClockDrift)
	f.check(len(s.topic) <= maxTopicName, field, s.topic, fmt.Sprintf("must be at most %d bytes, completed for Logs", maxTopicName))
	idempotent := or(s.kafka["enable.idempotence"], "false")
	f.check(strings.EqualFold(idempotent, "false"), "KafkaConfig[enable.idempotence]", idempotent,
		"must be false with Logs: a log that has forgotten would end the producer")
}

// randomBelow returns a random duration in [0, n).
func randomBelow(n time.Duration) time.Duration { return rand.N(n) }

// checkLogs decides on which kind of logs the roles are led, and checks the fields that depend on that.
func (s *settings) checkLogs(f *faults) {
	if _, s.majority = s.Provider.(kafka.SmallLogs); s.majority {
		f.check(s.Mode == Exclusive, "Mode", s.Mode.String(),
			"must be Exclusive with small logs: NonExclusive needs a consumer group, and there is no broker")
		f.check(s.Nomination == NominationOpen, "Nomination", s.Nomination.String(),
			"must be Open with small logs: Assigned needs a consumer group, and there is no broker")
		f.check(len(s.KafkaConfig) == 0, "KafkaConfig", "",
			"must be empty with small logs: there is no broker")
		f.check(s.LoginToken == nil, "LoginToken", "", "must be empty with small logs: there is no broker to log in to")
		f.check(s.Logs == 0, "Logs", s.Logs, "must be 0 with small logs: the Provider says how many there are")
		return
	}
	f.check(s.Logs == 0 || s.Logs == 1 || s.Logs == 3 || s.Logs == 5, "Logs", s.Logs,
		"must be 3 or 5, or 0 for one replicated log: of 3 one broker may fail, of 5 two")
	if s.Logs < 2 {
		return
	}
	s.majority, s.logs = true, s.Logs
	f.check(s.Mode == Exclusive, "Mode", s.Mode.String(),
		"must be Exclusive with Logs: NonExclusive has no lease that a log could carry")
	f.check(s.Nomination == NominationOpen, "Nomination", s.Nomination.String(),
		"must be Open with Logs: Assigned claims by partitions, and here each has all roles")
	f.check(s.Partitions == 1, "Partitions", s.Partitions,
		"must be 0 or 1 with Logs: each log has one partition, with all roles")
}

// resolveNames completes the names and checks them. It returns the field from which the topic's name derives.
func (s *settings) resolveNames(f *faults) (topicField string) {
	given := s.LeaderGroupID != ""
	s.LeaderGroupID, s.Name = or(s.LeaderGroupID, binaryName()), or(s.Name, defaultName())
	f.check(s.LeaderGroupID != "" && len(s.LeaderGroupID) <= 255 && utf8.ValidString(s.LeaderGroupID), "LeaderGroupID", s.LeaderGroupID,
		"must be 1 to 255 bytes of UTF-8")
	f.check(given || !commonName(s.LeaderGroupID), "LeaderGroupID", "",
		fmt.Sprintf("defaults to the name of the binary, and %q is one that many programs have, which would share a leader: set LeaderGroupID", s.LeaderGroupID))
	topicField = "LeaderTopic"
	if s.LeaderTopic == "" {
		s.LeaderTopic, topicField = s.LeaderGroupID+".neli", "LeaderGroupID"
	}
	const rule = "must be 1 to 249 of a–z, A–Z, 0–9, '.', '_' and '-', and neither '.' nor '..'"
	named := topicName.MatchString(s.LeaderTopic) && s.LeaderTopic != "." && s.LeaderTopic != ".."
	if topicField == "LeaderTopic" {
		f.check(named, "LeaderTopic", s.LeaderTopic, rule)
	} else if !f.has("LeaderGroupID") {
		f.check(named, "LeaderGroupID", s.LeaderGroupID, fmt.Sprintf("names the topic %q, which %s: choose another, or set LeaderTopic", s.LeaderTopic, rule))
	}
	f.check(len(s.Name) <= maxNameLength && utf8.ValidString(s.Name), "Name", s.Name,
		fmt.Sprintf("must be at most %d bytes of UTF-8", maxNameLength))
	f.check(lease.CheckZone(s.Zone) == "", "Zone", s.Zone, lease.CheckZone(s.Zone))
	shown := s.Advertise
	if strings.Contains(shown, "@") { // it may have a password
		shown = "[redacted]"
	}
	f.check(lease.CheckAdvertise(s.Advertise) == "", "Advertise", shown, lease.CheckAdvertise(s.Advertise))
	return topicField
}

// resolveTimes derives the intervals and checks them against each other.
func (s *settings) resolveTimes(f *faults) {
	session := sessionTimeout(s.kafka)
	groups := time.Duration(min(max(1, s.GroupsOnTopic), maxGroups))
	given := s.Config
	set := given.HeartbeatInterval != 0
	f.check(!set || s.HeartbeatInterval >= time.Millisecond, "HeartbeatInterval", s.HeartbeatInterval, "must be at least 1ms")
	if s.Mode == NonExclusive {
		f.check(s.HeartbeatTimeout <= maxDuration, "HeartbeatTimeout", s.HeartbeatTimeout, "must be at most 24h")
		f.check(s.HeartbeatInterval <= maxDuration, "HeartbeatInterval", s.HeartbeatInterval, "must be at most 24h")
		if s.HeartbeatTimeout > maxDuration || s.HeartbeatInterval > maxDuration {
			return // the sums below could overflow
		}
		s.HeartbeatTimeout = or(given.HeartbeatTimeout, 3*session)
		s.HeartbeatInterval = or(given.HeartbeatInterval, max(s.HeartbeatTimeout/20, time.Millisecond))
		s.broadcast = s.HeartbeatInterval * groups
		field, value, subject := s.faultyTime(given, session)
		f.check(s.HeartbeatTimeout > session+2*s.broadcast, field, value, fmt.Sprintf(
			subject+"must exceed the session timeout (%v) plus twice HeartbeatInterval (%v) × GroupsOnTopic (%d), "+
				"or a process that is cut off lapses before another is assigned", session, s.HeartbeatInterval, groups))
	} else {
		s.HeartbeatTimeout = or(given.HeartbeatTimeout, defaultTimeout)
		s.HeartbeatInterval = or(given.HeartbeatInterval, s.HeartbeatTimeout/5)
		s.broadcast = s.HeartbeatInterval
		f.check(s.HeartbeatTimeout >= minTimeout, "HeartbeatTimeout", s.HeartbeatTimeout, fmt.Sprintf("must be at least %v", minTimeout))
		f.check(s.HeartbeatTimeout <= maxTimeout, "HeartbeatTimeout", s.HeartbeatTimeout, fmt.Sprintf(
			"must be at most %v in exclusive mode: a process that knows nothing of the log waits that long for a leader "+
				"that it has not heard", maxTimeout))
		s.HeartbeatTimeout = min(max(s.HeartbeatTimeout, minTimeout), maxTimeout) // the checks below use the nearest value allowed
		f.check(!set || s.HeartbeatInterval <= s.HeartbeatTimeout*9/40, "HeartbeatInterval", s.HeartbeatInterval, fmt.Sprintf(
			"must be at most %v, 0.225 of HeartbeatTimeout (%v)", s.HeartbeatTimeout*9/40, s.HeartbeatTimeout))
		f.check(!set || f.has("HeartbeatInterval") || s.HeartbeatInterval >= s.HeartbeatTimeout/1000, "HeartbeatInterval", s.HeartbeatInterval, fmt.Sprintf(
			"must be at least a thousandth of HeartbeatTimeout (%v)", s.HeartbeatTimeout))
		s.broadcast = min(s.broadcast, s.HeartbeatTimeout) // the sums below could overflow
	}
	if !s.Observer && s.HeartbeatTimeout >= minTimeout {
		s.checkDelays(f)
	}
	s.HeartbeatInterval, s.broadcast = max(s.HeartbeatInterval, time.Millisecond), max(s.broadcast, time.Millisecond)
	// Long enough for the group to learn of the leaver (at a heartbeat), to rebalance twice
	// (cooperative) and for the successor's record to arrive.
	s.successorWait = 3*time.Second + 2*heartbeatInterval(s.kafka)
	s.rejoinWait = time.Second + 2*heartbeatInterval(s.kafka)
	// A member that receives nothing leaves the group while it still leads. Others learn of that at a heartbeat.
	s.absence = 2*time.Second + 2*heartbeatInterval(s.kafka) + 2*s.broadcast
	s.starvedAfter = max(session, s.HeartbeatTimeout-s.absence)
	if s.HeartbeatTimeout-session-2*s.broadcast < leastRebalance {
		// No other member could lead before V lapses. To leave earlier would only turn a stall of the log into a gap.
		s.starvedAfter = s.HeartbeatTimeout
	}
	s.goneAfter = session + 2*s.broadcast
	if s.Mode == NonExclusive && s.HeartbeatTimeout > 2*s.broadcast {
		s.leastHandOver = s.leastTimeout(session, set)
	}
	// A rebalance may have to wait until a dead member's session ends. With the cooperative
	// assignor one is often under way already, and the leaver's partitions move in the next:
	// librdkafka takes a second for each of the two.
	s.handoverOverlap = min(s.HeartbeatTimeout, min(session, 10*time.Second)+s.successorWait+2*s.broadcast)
	if s.kafka["group.instance.id"] != "" {
		// The group may keep the partitions of a static member that leaves until its session is
		// over, and gives them back to it if it returns earlier.
		s.absence += session
		s.handoverOverlap = min(s.HeartbeatTimeout, session+s.successorWait+2*s.broadcast)
	}
	if s.Mode == Exclusive && s.Nomination == NominationOpen {
		s.successorWait = max(answerWait, s.HeartbeatInterval)
	}
}

// faultyTime returns the field to be named if the times of non-exclusive mode do not fit: one that the
// user has set. It also returns that field's value and the beginning of the rule's text.
func (s *settings) faultyTime(given Config, session time.Duration) (field string, value any, subject string) {
	subject = fmt.Sprintf("does not fit: HeartbeatTimeout (%v) ", s.HeartbeatTimeout)
	switch {
	case given.HeartbeatTimeout != 0:
		return "HeartbeatTimeout", given.HeartbeatTimeout, ""
	case given.HeartbeatInterval != 0:
		return "HeartbeatInterval", given.HeartbeatInterval, subject
	case given.GroupsOnTopic > 1:
		return "GroupsOnTopic", given.GroupsOnTopic, subject
	}
	return "KafkaConfig[session.timeout.ms]", session.Milliseconds(), subject
}

// leastTimeout returns the least T with which a join, a leave or a cut leaves no role without a
// leader: a session, and the time for which a member stays away to make room for another one. If
// HeartbeatInterval is not set, B grows with T.
func (s *settings) leastTimeout(session time.Duration, set bool) time.Duration {
	if set {
		return session + s.absence
	}
	fixed := (session + s.absence - 2*s.broadcast).Seconds()
	share := (2 * s.broadcast).Seconds() / s.HeartbeatTimeout.Seconds() // the part of any T that two B take
	return time.Duration(math.Ceil(1000*fixed/(1-share)-0.001)) * time.Millisecond
}

// leastRebalance is the least time that a rebalance takes: a member that learns of it at a
// heartbeat joins up to a second later, since librdkafka looks once a second.
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
