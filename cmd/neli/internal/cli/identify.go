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
