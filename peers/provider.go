package peers

import (
	"context"
	"errors"
	"log/slog"

	"github.com/goneli/neli/kafka"
)

// Provider gives a Neli the small logs of a list of hosts in place of Kafka.
//
// neli.New checks the configuration, starts to listen for Config.Self, and returns an error with
// all faults. With a Self, each Neli needs a provider of its own, since an address has one log.
// Without a Self, several Nelis may share a provider.
func Provider(c Config) kafka.Provider { return &provider{c} }

type provider struct{ config Config }

var _ kafka.Checker = (*provider)(nil)

// Check implements kafka.Checker.
func (p *provider) Check() error { return p.config.check() }

// SmallLogs implements kafka.SmallLogs.
func (p *provider) SmallLogs(ctx context.Context, s kafka.LogSettings) (kafka.LogSet, error) {
	set, err := newLogSet(ctx, p.config, s)
	if err != nil {
		return nil, err
	}
	return set, nil
}

var errNoKafka = errors.New("peers: there is no Kafka here, only small logs: use Mode Exclusive and Nomination Open")

func (p *provider) Producer(map[string]string, *slog.Logger) (kafka.Producer, error) {
	return nil, errNoKafka
}

func (p *provider) LogReader(map[string]string, *slog.Logger) (kafka.LogReader, error) {
	return nil, errNoKafka
}

func (p *provider) GroupConsumer(map[string]string, *slog.Logger) (kafka.GroupConsumer, error) {
	return nil, errNoKafka
}

func (p *provider) Admin(kafka.Producer) (kafka.Admin, error) { return nil, errNoKafka }
