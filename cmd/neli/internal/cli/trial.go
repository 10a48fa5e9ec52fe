package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/kafka"
)

// tryWithin limits how long each part of a trial waits for the brokers.
const tryWithin = 10 * time.Second

// try tests what the first run needs besides the topic's description: that each broker serves at the
// address it advertises and, if all do and the topic is missing, that it can be created. It returns a
// line for each fault.
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
	case b.Failed < b.Tried: // some served, so the login is not at fault
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

// identifyWithin limits how long identify waits for the cluster's answers.
const identifyWithin = 5 * time.Second

// identify describes the cluster that was reached, for people.
func (s scout) identify(ctx context.Context, cfg neli.Config) string {
	ctx, cancel := context.WithTimeout(ctx, identifyWithin)
	defer cancel()
	var admin kafka.Admin
	select {
	case admin = <-s.admins:
	default:
		return "unknown"
	}
	settings, err := admin.Settings(ctx, cfg.LeaderTopic)
	if err != nil {
		settings = nil // no right to ask, which is reported elsewhere
	}
	var cluster kafka.ClusterInfo
	if i, ok := admin.(kafka.ClusterDescriber); ok {
		if cluster, err = i.Cluster(ctx); err != nil {
			return "unknown: " + withoutSecrets(err, cfg.KafkaConfig)
		}
	}
	hosts := append(strings.Split(fmt.Sprint(cfg.KafkaConfig["bootstrap.servers"]), ","), cluster.Hosts...)
	text := kindOfBroker(cluster.ID, hosts, slices.Collect(maps.Keys(settings)))
	if cluster.Version != "" {
		text += "; protocol of Kafka " + cluster.Version
	}
	text += fmt.Sprintf("; brokers up: %d", len(cluster.Hosts))
	if cluster.ID != "" {
		text += "; cluster " + printable(cluster.ID)
	}
	return text
}

// kinds lists signs of a broker's kind: part of a host's name, or the beginning of a setting's name
// or of the cluster's id. The first match counts.
var kinds = []struct{ host, setting, id, name string }{
	{host: ".kafka-serverless.", name: "Amazon MSK Serverless"},
	{host: ".confluent.cloud", id: "lkc-", name: "Confluent Cloud"},
	{host: ".servicebus.windows.net", name: "Azure Event Hubs"},
	{host: ".warpstream.com", setting: "warpstream.", id: "vci_", name: "WarpStream"},
	{host: ".streamnative.", name: "StreamNative"},
	{setting: "redpanda.", id: "redpanda.", name: "Redpanda"},
	{setting: "confluent.", name: "Confluent Platform"},
}

// kindOfBroker names the kind of broker, from the cluster's id, its hosts and the topic's settings.
func kindOfBroker(id string, hosts, settings []string) string {
	for _, k := range kinds {
		of := func(part string, in []string, fits func(s, part string) bool) bool {
			return part != "" && slices.ContainsFunc(in, func(s string) bool { return fits(strings.ToLower(s), part) })
		}
		if of(k.host, hosts, strings.Contains) || of(k.setting, settings, strings.HasPrefix) || k.id != "" && strings.HasPrefix(id, k.id) {
			return k.name
		}
	}
	if slices.ContainsFunc(hosts, func(h string) bool { return strings.Contains(h, ".kafka.") && strings.Contains(h, ".amazonaws.com") }) {
		return "Amazon MSK"
	}
	return "Apache Kafka, or a broker that does not say what it is"
}
