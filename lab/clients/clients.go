// Package clients has the Kafka clients on which members run, by name.
package clients

import (
	"fmt"
	"os"
	"runtime/debug"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/internal/confluent"
	"github.com/goneli/neli/kafka"
)

// Env is the environment variable that names the members' client: confluent (the default) or franz. Members inherit it.
const Env = "NELI_PROVIDER"

// Named returns the client of that name; "" is the library's default.
func Named(name string) (kafka.Provider, error) {
	switch name {
	case "", "confluent":
		return confluent.New()
	case "franz":
		return franz.Provider(), nil
	}
	return nil, fmt.Errorf("no client is called %q: must be confluent or franz", name)
}

// Chosen returns the client that Env names.
func Chosen() (kafka.Provider, error) {
	p, err := Named(os.Getenv(Env))
	if err != nil {
		err = fmt.Errorf("%s: %w", Env, err)
	}
	return p, err
}

// Version returns the name and the version of the client that Env names.
func Version() string {
	if os.Getenv(Env) != "franz" {
		_, version := ck.LibraryVersion()
		return "librdkafka " + version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/twmb/franz-go" {
				return "franz-go " + m.Version
			}
		}
	}
	return "franz-go"
}
