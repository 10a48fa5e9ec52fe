package neli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/confluent"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/internal/quorum"
	"github.com/goneli/neli/internal/redact"
	"github.com/goneli/neli/kafka"
)

// newCore makes the logs, and assembles the arbiter on them.
func newCore(set *settings, clocks clock.Clock, app application) (core, error) {
	on, err := set.open(set.Nomination == NominationAssigned && !set.Observer)
	if err != nil {
		return core{}, fmt.Errorf("neli: New: %w", err)
	}
	return set.newCore(on, clocks, app), nil
}

// open opens the logs, in exclusive mode with a group that nominates if nominated is true.
func (s *settings) open(nominated bool) (kafkalog.Opened, error) {
	if p, small := s.Provider.(kafka.SmallLogs); small {
		log, err := openSmallLogs(p, s)
		return kafkalog.Opened{Log: log}, err
	}
	p := s.Provider
	if p == nil {
		var err error
		if p, err = confluent.New(); err != nil {
			return kafkalog.Opened{}, err
		}
	}
	p, err := s.signingIn(p)
	if err != nil {
		return kafkalog.Opened{}, err
	}
	w := &kafkalog.Clients{Provider: p, Topic: s.topic, Group: s.LeaderGroupID, Partitions: s.Partitions, Logs: s.logs, Create: !s.DisableTopicCreation && !s.Observer,
		Broadcasts: s.Mode == NonExclusive, Nominated: nominated, Observer: s.Observer, T: s.HeartbeatTimeout, Absence: s.absence, Spread: s.spread, Brokers: s.brokers(),
		Logger: s.logger, Producing: s.producerProperties, Reading: s.readerProperties, Joining: s.groupProperties, Health: &s.health.clients}
	return w.Open()
}

// signingIn returns p with clients that log in as these settings demand. p must not be small logs.
func (s *settings) signingIn(p kafka.Provider) (kafka.Provider, error) {
	able, can := p.(kafka.LoginProvider)
	switch {
	case can:
		to := kafka.Login{Failed: s.health.loginFailed}
		if s.tokens != nil {
			to.Token = s.tokens.Token
		}
		return able.WithLogin(to), nil
	case s.tokens != nil:
		return nil, errors.New("Config.LoginToken: this Provider cannot log in with it, as it is no kafka.LoginProvider")
	}
	return p, nil
}

// newID returns a new random identifier of 130 bits.
func newID() string { return rand.Text() }

// announce logs the effective settings in one line, without secrets.
func (s *settings) announce() {
	args := []any{"topic", s.topic, "mode", s.Mode.String()}
	brokerless := s.majority && s.logs == 0
	switch {
	case brokerless:
		args = []any{"logs", "small", "mode", s.Mode.String()}
	case s.majority:
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
	log := kafkalog.FromSet(logs, set.logger, &set.health.clients.Contact)
	if n := logs.Logs(); n < 1 || n > quorum.MaxLogs || n%2 == 0 && kafkalog.Lists(log) == nil {
		_ = logs.Close() // nothing was used
		return nil, fmt.Errorf("the Provider has %d small logs: must be an odd number up to %d", n, quorum.MaxLogs)
	}
	return log, nil
}
