package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli"
	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/franz/iam"
	"github.com/goneli/neli/kafka"
)

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
