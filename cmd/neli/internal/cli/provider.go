package cli

import (
	"github.com/goneli/neli"
	"github.com/goneli/neli/franz"
)

// provider makes the Kafka clients: those without cgo, so that the command is one static
// file.
func provider() neli.Provider { return franz.Provider() }
