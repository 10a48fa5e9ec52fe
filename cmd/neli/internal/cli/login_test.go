package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
)

func TestRefusedLoginNamesItsProperty(t *testing.T) {
	refused := func(text string) error { return fmt.Errorf("%w: %s", kafka.ErrAuthentication, text) }
	for _, tc := range []struct {
		mechanism string
		err       error
		look      string
	}{
		{"PLAIN", refused("SASL_AUTHENTICATION_FAILED"), "look at sasl.username and sasl.password"},
		{"SCRAM-SHA-512", refused("UNSUPPORTED_SASL_MECHANISM: x"), "look at sasl.mechanism"},
		{"scram-sha-512", refused("tls: failed to verify certificate: x509: unknown authority"), "look at ssl.ca.location"},
		{"", refused("remote error: tls: certificate required"), "look at ssl.certificate.location and ssl.key.location"},
		{"OAUTHBEARER", refused("the broker refuses the token (invalid_token)"), "look at sasl.oauthbearer.scope"},
		{"AWS_MSK_IAM", refused("SASL_AUTHENTICATION_FAILED: Access denied"), "look at AWS's credentials"},
		{"PLAIN", errors.New("broker closed the connection: EOF"), "look at security.protocol and sasl.mechanism"},
		{"PLAIN", errors.New("is this a plaintext connection speaking to a tls endpoint?"), "look at security.protocol: the broker wants TLS"},
		{"OAUTHBEARER", refused("answers 401: look at sasl.oauthbearer.client.id"), "look at sasl.oauthbearer.client.id"},
		{"OAUTHBEARER", context.DeadlineExceeded, "look at sasl.oauthbearer.token.endpoint.url and bootstrap.servers: one of them does not answer"},
		{"PLAIN", context.DeadlineExceeded, "context deadline exceeded"},
		{"PLAIN", errors.New("connection refused"), "connection refused"},
	} {
		for _, name := range []string{"sasl.mechanism", "sasl.mechanisms"} {
			props := neli.KafkaConfigMap{name: tc.mechanism, "sasl.password": "hunter2"}
			err := explained(fmt.Errorf("cannot find the leader topic: %w", tc.err), props)
			require.ErrorIs(t, err, tc.err)
			require.Regexp(t, tc.look+"[^:]*(: (the broker|one of them) [a-z ]+)?$", err.Error())
			require.NotContains(t, withoutSecrets(fmt.Errorf("%w (hunter2)", tc.err), props), "hunter2")
		}
	}
}
