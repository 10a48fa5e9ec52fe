package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A record that is no report is an error, even if a report follows.
func TestARecordThatIsNoReportIsAnError(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	defer broker.Close()
	r := reports{kgo.SeedBrokers(broker.ListenAddrs()...), "reports"}
	require.NoError(t, r.create(t.Context()))
	client, err := kgo.NewClient(r.brokers, kgo.DefaultProduceTopic(r.topic))
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.ProduceSync(t.Context(), kgo.StringRecord("1 17")).FirstErr())
	last, err := r.last(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, last)
	require.NoError(t, client.ProduceSync(t.Context(), kgo.StringRecord("no report"), kgo.StringRecord("2 17")).FirstErr())
	_, err = r.last(t.Context())
	require.Error(t, err)
}
