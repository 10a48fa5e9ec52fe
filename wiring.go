package neli

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/confluent"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/freeze"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/internal/quorum"
	"github.com/goneli/neli/internal/redact"
	"github.com/goneli/neli/kafka"
)

// newCore makes the Kafka clients and assembles the arbiter on them.
func newCore(set *settings, clocks clock.Clock, app application) (core, error) {
	p := set.Provider
	if f, can := p.(freeze.Freezer); can {
		set.frozen = f.Frozen()
	}
	if p, small := p.(kafka.SmallLogs); small {
		log, err := openSmallLogs(p, set)
		if err != nil {
			return core{}, fmt.Errorf("neli: New: %w", err)
		}
		return set.newExclusive(log, nil, clocks, app), nil
	}
	if p == nil {
		var err error
		if p, err = confluent.New(); err != nil {
			return core{}, fmt.Errorf("neli: New: %w", err)
		}
	}
	p, err := set.signingIn(p)
	if err != nil {
		return core{}, fmt.Errorf("neli: New: %w", err)
	}
	w := set.kafkaClients(p)
	c, err := set.kafkaCore(w, clocks, app)
	if err != nil {
		w.Undo()
		return core{}, fmt.Errorf("neli: New: the Kafka client refuses its configuration: %w", err)
	}
	return c, nil
}

// kafkaClients returns a maker of Kafka clients with these settings.
func (s *settings) kafkaClients(p kafka.Provider) *kafkalog.Clients {
	return &kafkalog.Clients{Provider: p, Topic: s.topic, Group: s.LeaderGroupID, Partitions: s.Partitions, Apart: s.logs, Create: !s.DisableTopicCreation && !s.Observer,
		Observer: s.Observer, Lease: s.HeartbeatTimeout, Away: s.starvedPause, Spread: s.spread, Brokers: s.brokers(), Logger: s.logger,
		Producing: s.producerProperties, Reading: s.readerProperties, Joining: s.groupProperties, Pace: &s.pace,
		Throttling: &s.throttling, Contact: &s.contact, Refusals: &s.refusals, Replaced: &s.replaced}
}

// kafkaCore is newCore for logs that are partitions of a topic.
func (s *settings) kafkaCore(w *kafkalog.Clients, clocks clock.Clock, app application) (core, error) {
	if s.Mode == NonExclusive {
		return s.newNonExclusive(w, clocks, app)
	}
	log, nom, err := s.openLogs(w, s.Nomination == NominationAssigned && !s.Observer)
	if err != nil {
		return core{}, err
	}
	return s.newExclusive(log, nom, clocks, app), nil
}

// openLogs opens the leader topic, or the logs of Config.Logs.
func (s *settings) openLogs(w *kafkalog.Clients, nominated bool) (elector.Log, elector.Nominator, error) {
	if s.logs > 0 {
		logs, err := w.SmallLogs()
		return logs, nil, err
	}
	return w.Log(nominated)
}

// newID returns a new random identifier of 130 bits.
func newID() string { return rand.Text() }

// announce logs the effective settings in one line, without secrets.
func (s *settings) announce() {
	args := []any{"topic", s.topic, "mode", s.Mode.String()}
	brokerless := s.small && s.logs == 0
	switch {
	case brokerless:
		args = []any{"logs", "small", "mode", s.Mode.String()}
	case s.small:
		args = append(args, "logs", s.logs)
	}
	if s.HeartbeatTimeout < s.leastHandOver {
		s.logger.Warn("HeartbeatTimeout is too short for hand-overs without a gap: a join, a leave or a cut may leave roles without a leader for a rebalance",
			"heartbeatTimeout", s.HeartbeatTimeout, "least", s.leastHandOver)
	}
	if s.Mode == Exclusive {
		args = append(args, "nomination", s.Nomination.String())
	}
	args = append(args, "roles", s.Roles, "heartbeatTimeout", s.HeartbeatTimeout)
	for _, more := range []struct {
		name  string
		value any
		shown bool // it is not the default
	}{
		{"heartbeatInterval", s.broadcast, s.Mode != Exclusive || s.HeartbeatInterval != s.HeartbeatTimeout/5},
		{"maxPulseInterval", s.MaxPulseInterval, s.MaxPulseInterval != defaultMaxPulse},
		{"drainTimeout", s.DrainTimeout, s.Mode == Exclusive && s.DrainTimeout != defaultDrain},
		{"maxClockDrift", s.MaxClockDrift, s.Mode == Exclusive && s.MaxClockDrift != defaultDrift},
		{"observer", true, s.Observer},
		{"tokenBase", s.TokenBase, s.TokenBase != 0},
	} {
		if more.shown {
			args = append(args, more.name, more.value)
		}
	}
	if brokerless {
		s.logger.Info("starting", args...)
		return
	}
	shown := redact.Properties(s.kafka)
	props := make([]any, 0, len(shown))
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		props = append(props, slog.String(name, shown[name]))
	}
	s.logger.Info("starting", append(args, slog.Group("kafka", props...))...)
}

// openSmallLogs opens a Provider's small logs.
func openSmallLogs(p kafka.SmallLogs, set *settings) (elector.Log, error) {
	logs, err := p.SmallLogs(context.Background(), kafka.LogSettings{Group: set.LeaderGroupID, Name: set.Name, HeartbeatTimeout: set.HeartbeatTimeout, MaxClockDrift: set.MaxClockDrift,
		Logger: set.logger})
	if err != nil {
		return nil, err
	}
	if n := logs.Logs(); n < 1 || n > quorum.MaxLogs || n%2 == 0 {
		_ = logs.Close() // nothing was used
		return nil, fmt.Errorf("the Provider has %d small logs: must be an odd number up to %d", n, quorum.MaxLogs)
	}
	return kafkalog.FromSet(logs, set.logger, &set.contact), nil
}

// openLog opens the logs for a process that does not contend and only reads and writes them.
func openLog(set *settings) (elector.Log, error) {
	p := set.Provider
	if p, small := p.(kafka.SmallLogs); small {
		return openSmallLogs(p, set)
	}
	if p == nil {
		var err error
		if p, err = confluent.New(); err != nil {
			return nil, err
		}
	}
	p, err := set.signingIn(p)
	if err != nil {
		return nil, err
	}
	w := set.kafkaClients(p)
	log, _, err := set.openLogs(w, false)
	if err != nil {
		w.Undo()
		return nil, err
	}
	return log, nil
}
