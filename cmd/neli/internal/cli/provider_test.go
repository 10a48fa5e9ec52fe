package cli

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

// With the property sasl.mechanism alone, the command logs in to Amazon MSK by IAM. Other
// mechanisms do not involve AWS.
func TestMSKByProperty(t *testing.T) {
	props := map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}
	for _, name := range []string{"sasl.mechanism", "sasl.mechanisms"} {
		p, err := provider(neli.KafkaConfigMap{name: "AWS_MSK_IAM"}).Producer(props, slog.New(slog.DiscardHandler))
		require.NoError(t, err, name)
		require.NoError(t, p.Close())
	}
	_, err := provider(neli.KafkaConfigMap{}).Producer(props, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "sasl.mechanism=AWS_MSK_IAM")
}
