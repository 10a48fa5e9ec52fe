package client

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProvider(t *testing.T) {
	for name, version := range map[string]string{"": "librdkafka", "confluent": "librdkafka", "franz": "franz-go"} {
		t.Setenv(Env, name)
		p, err := Provider()
		require.NoError(t, err)
		require.NotNil(t, p)
		require.Contains(t, Version(), version)
	}
	t.Setenv(Env, "sarama")
	_, err := Provider()
	require.ErrorContains(t, err, "NELI_PROVIDER=sarama")
}
