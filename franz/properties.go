package franz

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl"
)

// This file reads properties in librdkafka's words; table.go says what becomes of each.

// kind of client.
type kind int

const (
	forProducer kind = iota
	forReader
	forGroup
)

// settings are what the properties of one client say.
type settings struct {
	kind kind
	base []kgo.Opt // whose value is a property's, and no more

	delivery            time.Duration // how long a record may take to be acknowledged
	propagation         time.Duration // for how long a topic may be unknown before that is an error
	backoff, backoffMax time.Duration
	metadata            [2]time.Duration // least and greatest age

	group      string
	balancers  []kgo.GroupBalancer
	serverSide string // the assignor of KIP-848; "": the classic protocol decides
	instance   bool   // a static member

	compression compression
	security    security
}

// The defaults of librdkafka, where franz-go's are others: a property that is not set
// means the same with both. franz-go refuses less than the least values.
const (
	leastMetadataAge = 10 * time.Millisecond
	leastOverhead    = 100 * time.Millisecond
	leastFetchWait   = 10 * time.Millisecond
	// Records that are ready within it share one request for each broker, as the
	// beats of all partitions are; without it the first would go alone, and the
	// others when its answer has come.
	leastLinger = time.Millisecond
	// Shorter than a broker's own (connections.max.idle.ms, ten minutes), so that no
	// connection is closed by it just as a claim is to be sent.
	idleConnection = 9 * time.Minute
)

// parse translates the properties of a client, and names all that it cannot. given is how it can
// log in otherwise.
func parse(kind kind, props map[string]string, given ...sasl.Mechanism) (*settings, error) {
	s := &settings{
		kind:        kind,
		delivery:    5 * time.Minute,
		propagation: 30 * time.Second,
		backoff:     100 * time.Millisecond,
		backoffMax:  time.Second,
		metadata:    [2]time.Duration{100 * time.Millisecond, 5 * time.Minute},
		security:    security{protocol: "plaintext", verify: true, identify: true},
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if err := known(name).apply(s, name, props[name]); err != nil {
			faults = append(faults, err)
		}
	}
	if kind == forGroup && s.group == "" {
		faults = append(faults, errors.New("group.id: is needed"))
	}
	if err := s.security.load(given); err != nil {
		faults = append(faults, err)
	}
	if len(faults) == 0 {
		return s, nil
	}
	return nil, fmt.Errorf("client refuses its properties: %w", errors.Join(faults...))
}

// property is what becomes of one of librdkafka's.
type property struct {
	names []string // the first is the usual one
	means string   // for docs/clients.md
	set   func(s *settings, value string) error
}

// apply sets the property. An empty value means that it is not set, as it does to
// librdkafka. Errors show a value only where it is known to be no secret.
func (p *property) apply(s *settings, name, value string) error {
	switch {
	case p == nil:
		return fmt.Errorf("%s: %s", name, hint(name))
	case value == "" || p.set == nil:
		return nil
	}
	if err := p.set(s, value); err != nil {
		return fmt.Errorf("%s=%s: %w", name, value, err)
	}
	return nil
}

// known finds a property in the table. What is not there is refused.
func known(name string) *property {
	for i := range table {
		if slices.Contains(table[i].names, name) {
			return &table[i]
		}
	}
	return nil
}

// hint says why a property is refused, and what to do instead if there is something.
func hint(name string) string {
	for _, r := range refused {
		if strings.HasPrefix(name, r.prefix) {
			return r.why
		}
	}
	return "franz-go has nothing for it, or it is not known"
}

// opts are the options that the user's own may change.
func (s *settings) opts() []kgo.Opt {
	opts := append([]kgo.Opt{kgo.ConnIdleTimeout(idleConnection), kgo.MaxVersions(requestVersions())}, s.base...)
	opts = append(opts,
		kgo.RetryBackoffFn(s.retryBackoff),
		kgo.MetadataMinAge(s.metadata[0]), kgo.MetadataMaxAge(max(s.metadata[0], s.metadata[1])),
	)
	if s.kind == forProducer {
		opts = append(opts, kgo.ProducerBatchCompression(s.compression.codec()))
	}
	return append(opts, s.security.opts()...)
}

// requestVersions are franz-go's, but for ApiVersions, with which every connection begins. Brokers
// up to Kafka 4.3 refuse its version 5 (KIP-1242), and franz-go asks again: a round trip more per
// connection.
func requestVersions() *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(kmsg.ApiVersions.Int16(), 4)
	return v
}

// retryBackoff doubles with each failure, as librdkafka's does, and spreads by a
// fifth: what has failed for many at once must not come back at once.
func (s *settings) retryBackoff(failures int) time.Duration {
	d := float64(s.backoff) * math.Pow(2, float64(min(max(failures, 1), 20)-1))
	d = min(d*(0.8+0.4*rand.Float64()), float64(max(s.backoffMax, s.backoff)))
	return time.Duration(d)
}

// The shapes of values.

func text(set func(*settings, string)) func(*settings, string) error {
	return func(s *settings, v string) error { set(s, v); return nil }
}

func option[T kgo.Opt](make func(string) T) func(*settings, string) error {
	return text(func(s *settings, v string) { s.base = append(s.base, make(v)) })
}

// number is an integer within bounds.
func number(least, most int64, set func(*settings, int64)) func(*settings, string) error {
	return func(s *settings, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least || n > most {
			return fmt.Errorf("must be an integer from %d to %d", least, most)
		}
		set(s, n)
		return nil
	}
}

func size[T kgo.Opt](least int64, make func(int32) T) func(*settings, string) error {
	return number(least, 1<<30, func(s *settings, n int64) { s.base = append(s.base, make(int32(n))) })
}

// millis is a time in milliseconds, fractions of one included.
func millis(least, most time.Duration, set func(*settings, time.Duration)) func(*settings, string) error {
	return func(s *settings, v string) error {
		n, err := strconv.ParseFloat(v, 64)
		d := time.Duration(n * float64(time.Millisecond))
		if err != nil || math.IsNaN(n) || n < 0 || n > math.MaxInt32 || d < least || d > most {
			return fmt.Errorf("must be milliseconds from %d to %d", least.Milliseconds(), most.Milliseconds())
		}
		set(s, d)
		return nil
	}
}

// wait is a time as an option. franz-go refuses less than least, and is given that.
func wait[T kgo.Opt](least, most time.Duration, make func(time.Duration) T) func(*settings, string) error {
	return millis(0, most, func(s *settings, d time.Duration) { s.base = append(s.base, make(max(d, least))) })
}

// choice is one of some words.
func choice(set func(*settings, string), words ...string) func(*settings, string) error {
	return func(s *settings, v string) error {
		v = strings.ToLower(v)
		if !slices.Contains(words, v) {
			return fmt.Errorf("must be %s", strings.Join(words, " or "))
		}
		set(s, v)
		return nil
	}
}

// only takes nothing but what the library sets anyway.
func only(words ...string) func(*settings, string) error {
	return choice(func(*settings, string) {}, words...)
}

func truth(set func(*settings, bool)) func(*settings, string) error {
	return choice(func(s *settings, v string) { set(s, v == "true") }, "true", "false")
}
