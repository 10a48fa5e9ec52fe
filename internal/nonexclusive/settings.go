package nonexclusive

import (
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/kafka"
)

// Settings are the durations and names that an Arbiter is given once. How the durations
// depend on each other, and why, is said where package neli derives them.
type Settings struct {
	Topic     string
	T         time.Duration // HeartbeatTimeout: V may be younger than this
	Broadcast time.Duration // B, between broadcasts

	HandoverOverlap time.Duration // how long a leaving process leads on
	StarvedAfter    time.Duration // without a record on an assigned partition: leave the group
	StarvedPause    time.Duration // how long it then stays out of the group

	Alive  func(now clock.Instant) bool // whether the application does something; must not block
	Now    func() clock.Instant
	Logger *slog.Logger
}

// Clients are the Kafka clients that an Arbiter uses, and closes at its end.
type Clients struct {
	Topic    *kafkalog.Topic
	Producer kafka.Producer
	Member   *kafkalog.GroupMember
}
