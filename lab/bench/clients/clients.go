// Package clients observes the library's Kafka clients where the library makes them. It does not change them.
package clients

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

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

// Franz is the name of the other client than the default.
const Franz = "franz"

// Named returns the provider of that name; "" is the library's default.
func Named(name string) (kafka.Provider, error) {
	switch name {
	case "":
		return confluent.New()
	case Franz:
		return franz.Provider(), nil
	}
	return nil, fmt.Errorf("no client is called %q: must be %q, or nothing for the default", name, Franz)
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
