package neli_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// What does not go with Config.Token is an error of New that names the field, and no value of a secret.
func TestTokenSettings(t *testing.T) {
	token := func(context.Context) (neli.Token, error) {
		return neli.Token{Value: "v", Expires: time.Now().Add(time.Hour)}, nil
	}
	for says, cfg := range map[string]neli.Config{
		"KafkaConfig[security.protocol]: \"\" must be SASL_SSL":              {},
		"KafkaConfig[sasl.mechanism]: \"PLAIN\" must be OAUTHBEARER":         {KafkaConfig: neli.KafkaConfigMap{"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}},
		"KafkaConfig[sasl.oauthbearer.method]: \"oidc\" has no effect":       {KafkaConfig: neli.KafkaConfigMap{"security.protocol": "SASL_SSL", "sasl.oauthbearer.method": "oidc"}},
		"KafkaConfig[sasl.oauthbearer.client.secret]: \"[redacted]\" has no": {KafkaConfig: neli.KafkaConfigMap{"security.protocol": "SASL_SSL", "sasl.oauthbearer.client.secret": "s3cret"}},
		"Config.Token: this Provider cannot log in with it": {KafkaConfig: neli.KafkaConfigMap{"security.protocol": "SASL_SSL"},
			Provider: nelitest.NewBroker(nelitest.Options{}).Provider("a")},
		"Token: \"\" must be empty with small logs": {Provider: nelitest.NewSmallLogs(3, time.Millisecond).Provider("a")},
	} {
		cfg.LeaderGroupID, cfg.Token = "g", token
		if cfg.Provider == nil {
			cfg.Provider = nelitest.NewBroker(nelitest.Options{}).Provider("a")
		}
		_, err := neli.New(cfg)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "s3cret")
	}
}
