package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/goneli/neli"
	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/franz/iam"
	"github.com/goneli/neli/internal/redact"
	"github.com/goneli/neli/kafka"
	"github.com/twmb/franz-go/pkg/kgo"
)

// explained adds to a failed login's or connection's error which properties to look at, unless it says so.
func explained(err error, props neli.KafkaConfigMap) error {
	if err == nil {
		return nil
	}
	if look := lookAt(err, props); look != "" {
		return fmt.Errorf("%w: look at %s", err, look)
	}
	return err
}

func lookAt(err error, props neli.KafkaConfigMap) string {
	text := err.Error()
	mechanism := mechanism(props)
	switch {
	case strings.Contains(text, "look at "):
		return ""
	case strings.HasSuffix(text, "EOF)"), strings.HasSuffix(text, "EOF"):
		return "security.protocol and sasl.mechanism, since a broker that closes the connection may want TLS or other credentials"
	case strings.Contains(text, "plaintext connection speaking to a tls endpoint"):
		return "security.protocol: the broker wants TLS"
	case mechanism == "OAUTHBEARER" && errors.Is(err, context.DeadlineExceeded):
		// The client gives up on a connection before its request to the token endpoint times out.
		return "sasl.oauthbearer.token.endpoint.url and bootstrap.servers: one of them does not answer"
	case !errors.Is(err, kafka.ErrAuthentication):
		return ""
	case strings.Contains(text, "remote error: tls"):
		return "ssl.certificate.location and ssl.key.location: the broker wants a client certificate that it trusts"
	case strings.Contains(text, "certificate"):
		return "ssl.ca.location"
	case strings.Contains(text, "UNSUPPORTED_SASL_MECHANISM"):
		return "sasl.mechanism: the broker accepts others"
	case mechanism == "OAUTHBEARER":
		return "sasl.oauthbearer.scope and sasl.oauthbearer.token.endpoint.url, and at the issuer and audience that the broker expects"
	case mechanism == "AWS_MSK_IAM":
		return "AWS's credentials (AWS_PROFILE, AWS_REGION) and their policy"
	}
	return "sasl.username and sasl.password"
}

// withoutSecrets returns the text of a Kafka client's error without the values of secret properties.
// The library redacts the errors that it returns, but this one has not passed through it.
func withoutSecrets(err error, props neli.KafkaConfigMap) string {
	all := map[string]string{}
	for name, value := range props {
		all[name] = fmt.Sprint(value)
	}
	return redact.Of(all).Text(explained(err, props).Error())
}

// provider returns the franz-go clients, which need no cgo, so that the command is one static file.
// It asks AWS for credentials only if sasl.mechanism needs them.
func provider(props neli.KafkaConfigMap) kafka.Provider {
	if mechanism(props) == "AWS_MSK_IAM" {
		return franz.Provider(kgo.SASL(iam.Mechanism()))
	}
	return franz.Provider()
}

// mechanism returns sasl.mechanism, by either of its names.
func mechanism(props neli.KafkaConfigMap) string {
	return strings.ToUpper(fmt.Sprint(cmp.Or(props["sasl.mechanism"], props["sasl.mechanisms"])))
}
