package clients

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEnvironmentNamesTheClient(t *testing.T) {
	for name, version := range map[string]string{"": "librdkafka", "confluent": "librdkafka", "franz": "franz-go"} {
		t.Setenv(Env, name)
		p, err := Chosen()
		require.NoError(t, err)
		require.NotNil(t, p)
		require.Contains(t, Version(), version)
	}
	t.Setenv(Env, "sarama")
	_, err := Chosen()
	require.ErrorContains(t, err, `NELI_PROVIDER: no client is called "sarama"`)
}
