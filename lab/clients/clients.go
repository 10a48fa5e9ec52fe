// Package clients has the Kafka clients on which members run, by name, and observes them where the library makes them. It
// does not change them.
package clients

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"sync"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/internal/confluent"
	"github.com/goneli/neli/kafka"
)

// Observed is a provider that records what the library does with it.
type Observed struct {
	kafka.Provider
	now func() time.Duration

	mu               sync.Mutex
	producer, reader map[string]string
	metadata         time.Duration
}

// Observe returns an Observed that has recorded nothing yet. now is the clock of Metadata.
func Observe(p kafka.Provider, now func() time.Duration) *Observed {
	return &Observed{Provider: p, now: now}
}

// Env names the client of machines that run on one: confluent, which is the default, or franz. Members inherit it.
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

// Producer notes the properties.
func (o *Observed) Producer(props map[string]string, log *slog.Logger) (kafka.Producer, error) {
	o.note(&o.producer, props)
	return o.Provider.Producer(props, log)
}

// LogReader notes the properties.
func (o *Observed) LogReader(props map[string]string, log *slog.Logger) (kafka.LogReader, error) {
	o.note(&o.reader, props)
	return o.Provider.LogReader(props, log)
}

func (o *Observed) note(where *map[string]string, props map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*where = maps.Clone(props)
}

// Properties returns the properties that the library gave its producer and its reader, nil before it made them.
func (o *Observed) Properties() (producer, reader map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.producer, o.reader
}

// Metadata returns when a broker first described the topic; 0 before that.
func (o *Observed) Metadata() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.metadata
}

// Admin returns an admin client whose answers are recorded.
func (o *Observed) Admin(p kafka.Producer) (kafka.Admin, error) {
	a, err := o.Provider.Admin(p)
	if err != nil {
		return nil, err
	}
	return admin{a, o}, nil
}

type admin struct {
	kafka.Admin
	o *Observed
}

func (a admin) Topic(ctx context.Context, topic string) (kafka.TopicInfo, error) {
	info, err := a.Admin.Topic(ctx, topic)
	if err == nil {
		a.o.described()
	}
	return info, err
}

func (o *Observed) described() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.metadata == 0 {
		o.metadata = o.now()
	}
}
