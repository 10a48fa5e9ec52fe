package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A cloud service is recognised by the names of its hosts, and a broker on the user's own machines
// by settings that Kafka does not have.
func TestKindOfBroker(t *testing.T) {
	for _, c := range []struct {
		id      string
		host    string
		setting string
		want    string
	}{
		{"", "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com", "", "Amazon MSK"},
		{"", "boot-abc.c3.kafka-serverless.eu-west-1.amazonaws.com:9098", "", "Amazon MSK Serverless"},
		{"lkc-5v8o", "kafka-1:9092", "", "Confluent Cloud"},
		{"", "pkc-1.eu-central-1.aws.confluent.cloud:9092", "confluent.tier.enable", "Confluent Cloud"},
		{"", "kafka-1:9092", "confluent.tier.enable", "Confluent Platform"},
		{"", "mine.servicebus.windows.net:9093", "", "Azure Event Hubs"},
		{"vci_abc", "10.0.0.1:9092", "", "WarpStream"},
		{"redpanda.1", "10.0.0.1:9092", "", "Redpanda"},
		{"", "10.0.0.1:9092", "redpanda.remote.read", "Redpanda"},
		{"MkU3OEVBNTcwNTJENDM2Qg", "kafka.example.com:9092", "retention.ms", "Apache Kafka, or a broker that does not say what it is"},
	} {
		require.Equal(t, c.want, kindOfBroker(c.id, []string{c.host}, []string{c.setting}), c)
	}
}
