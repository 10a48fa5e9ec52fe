package cli

import (
	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/kafka"
)

// provider makes the Kafka clients: those without cgo, so that the command is one static
// file.
func provider() kafka.Provider { return franz.Provider() }
