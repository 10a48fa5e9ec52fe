package nonexclusive

import (
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/kafka"
)

// Settings are the fixed durations and names of an Arbiter. Package neli derives the durations,
// and says there how they depend on each other.
type Settings struct {
	Topic     string
	T         time.Duration // HeartbeatTimeout: V may be younger than this
	Broadcast time.Duration // B, the time between broadcasts

	HandoverOverlap time.Duration // how long a leaving process leads on
	StarvedAfter    time.Duration // after this long without a record on an assigned partition, leave the group
	Absence         time.Duration // how long it then stays out
	GoneAfter       time.Duration // a member of which no record was received for this long is gone

	Alive  func(now clock.Instant) bool // whether the application makes progress; must not block
	Deaf   func(now clock.Instant) bool // whether it cannot be told of a new term for long; must not block. nil: it can
	Now    func() clock.Instant
	Logger *slog.Logger
}

// Clients are the Kafka clients that an Arbiter uses, and closes when it ends.
type Clients struct {
	Topic    *kafkalog.Topic
	Producer kafka.Producer
	Member   *kafkalog.GroupMember
}
