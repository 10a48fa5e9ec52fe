package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
)

// identifyWithin is how long a cluster may take to say what it is.
const identifyWithin = 5 * time.Second

// identify says, for people, what cluster has been reached.
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
		settings = nil // it may not ask, which is said elsewhere
	}
	var cluster kafka.ClusterInfo
	if i, ok := admin.(kafka.Identifier); ok {
		if cluster, err = i.Cluster(ctx); err != nil {
			return "unknown: " + withoutSecrets(err, cfg.KafkaConfig)
		}
	}
	hosts := append(strings.Split(fmt.Sprint(cfg.KafkaConfig["bootstrap.servers"]), ","), cluster.Hosts...)
	text := kindOfBroker(cluster.ID, hosts, slices.Collect(maps.Keys(settings)))
	if cluster.Version != "" {
		text += ", which understands what Kafka " + cluster.Version + " does"
	}
	text += fmt.Sprintf("; brokers up: %d", len(cluster.Hosts))
	if cluster.ID != "" {
		text += "; cluster " + printable(cluster.ID)
	}
	return text
}

// kinds are what gives a broker's kind away: part of a host's name, the beginning of a
// setting's or of the cluster's id. The first that fits counts.
var kinds = []struct{ host, setting, id, name string }{
	{host: ".kafka-serverless.", name: "Amazon MSK Serverless"},
	{host: ".confluent.cloud", id: "lkc-", name: "Confluent Cloud"},
	{host: ".servicebus.windows.net", name: "Azure Event Hubs"},
	{host: ".warpstream.com", setting: "warpstream.", id: "vci_", name: "WarpStream"},
	{host: ".streamnative.", name: "StreamNative"},
	{setting: "redpanda.", id: "redpanda.", name: "Redpanda"},
	{setting: "confluent.", name: "Confluent Platform"},
}

// kindOfBroker says what kind of broker it is, by what is known of it.
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
	return "Apache Kafka, or one that does not say what it is"
}
