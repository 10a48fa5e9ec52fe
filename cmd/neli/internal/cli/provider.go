package cli

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli"
	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/franz/iam"
	"github.com/goneli/neli/kafka"
)

// provider makes the Kafka clients: those without cgo, so that the command is one static
// file. AWS is asked for credentials only if they are the way to log in.
func provider(props neli.KafkaConfigMap) kafka.Provider {
	if mechanism, set := props["sasl.mechanism"]; set && strings.EqualFold(fmt.Sprint(mechanism), "AWS_MSK_IAM") {
		return franz.Provider(kgo.SASL(iam.Mechanism()))
	}
	return franz.Provider()
}
