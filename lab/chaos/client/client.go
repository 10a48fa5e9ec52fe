// Package client chooses the Kafka client on which the members run.
package client

import (
	"fmt"
	"os"
	"runtime/debug"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/internal/confluent"
	"github.com/goneli/neli/kafka"
)

// Env names the client: confluent, which is the default, or franz. Members inherit it.
const Env = "NELI_PROVIDER"

// Provider returns the client that Env names. It fails if there is no such client.
func Provider() (kafka.Provider, error) {
	switch name := os.Getenv(Env); name {
	case "", "confluent":
		return confluent.New()
	case "franz":
		return franz.Provider(), nil
	default:
		return nil, fmt.Errorf("%s=%s: must be confluent or franz", Env, name)
	}
}

// Version returns the name and the version of the client that Env names.
func Version() string {
	if os.Getenv(Env) != "franz" {
		_, version := ck.LibraryVersion()
		return "librdkafka " + version
	}
	const module = "github.com/twmb/franz-go"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return "franz-go " + m.Version
			}
		}
	}
	return "franz-go"
}
