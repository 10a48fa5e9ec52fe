package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/kafka"
)

// tryWithin limits how long each part of a trial waits for the brokers.
const tryWithin = 10 * time.Second

// try tries what the first run needs beyond an answer about the topic: each broker, at the address that
// it advertises, and, if the topic is missing, whether it can be created. It returns a line for each
// fault.
func (s scout) try(ctx context.Context, cfg neli.Config, missing bool) (faults []string) {
	var admin kafka.Admin
	select {
	case admin = <-s.admins:
		s.admins <- admin // for identify
	default:
		return nil
	}
	probing, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	if p, ok := admin.(kafka.Prober); ok {
		probes, err := p.Probe(probing)
		if err != nil && ctx.Err() == nil {
			faults = append(faults, "not all brokers could be tried: "+withoutSecrets(err, cfg.KafkaConfig))
		}
		for _, b := range probes {
			if b.Err != nil && ctx.Err() == nil {
				faults = append(faults, unreachable(b, cfg))
			}
		}
	}
	if !missing || len(faults) > 0 {
		return faults
	}
	creating, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	if err := kafkalog.TryCreate(creating, admin, cfg.LeaderTopic, cfg.HeartbeatTimeout); err != nil && ctx.Err() == nil {
		faults = append(faults, "topic "+printable(cfg.LeaderTopic)+" cannot be created: "+withoutSecrets(err, cfg.KafkaConfig))
	}
	return faults
}

// unreachable says what is wrong with a broker, and what to look at.
func unreachable(b kafka.BrokerProbe, cfg neli.Config) string {
	why := withoutSecrets(b.Err, cfg.KafkaConfig)
	var dial *net.OpError
	switch {
	case b.Failed < b.Tried: // it is none of the login's
		return fmt.Sprintf("broker %d, %s, served only %d of the %d connections that a member opens: look at the broker's max.connections and max.connections.per.ip",
			b.ID, printable(b.Address), b.Tried-b.Failed, b.Tried)
	case errors.Is(b.Err, kafka.ErrUnserved):
		return fmt.Sprintf("broker %d at %s: %s", b.ID, printable(b.Address), why)
	case errors.As(b.Err, &dial) && dial.Op == "dial" || errors.Is(b.Err, context.DeadlineExceeded):
		return fmt.Sprintf("broker %d cannot be reached at %s, which it advertises: %s; look at the broker's advertised.listeners, and at this host's name service and firewall",
			b.ID, printable(b.Address), why)
	}
	return fmt.Sprintf("broker %d, %s, does not serve this client: %s", b.ID, printable(b.Address), why)
}
