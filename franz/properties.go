package franz

import (
	"cmp"
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

// This file reads librdkafka's properties. table.go says what each one does.

// kind is the kind of a client.
type kind int

const (
	forProducer kind = iota
	forReader
	forGroup
)

// settings are the properties of one client.
type settings struct {
	kind kind
	base []kgo.Opt // options that simply have the value of a property

	delivery            time.Duration // how long a record may take to be acknowledged
	propagation         time.Duration // how long a topic may be unknown before that is an error
	backoff, backoffMax time.Duration
	metadata            [2]time.Duration // minimum and maximum age

	fetchMax, readMax, batchMax int32 // bytes; 0 if not set

	group      string
	balancers  []kgo.GroupBalancer
	serverSide bool   // the protocol of KIP-848, not the classic one
	assignor   string // of KIP-848; "": uniform
	instance   bool   // a static member

	compression compression
	security    security
	protocols   []string // named in bootstrap.servers
}

// franz-go refuses values below the first three.
const (
	leastMetadataAge = 10 * time.Millisecond
	leastOverhead    = 100 * time.Millisecond
	leastFetchWait   = 10 * time.Millisecond
	// Records that become ready within this time share one request for each broker, for example
	// the beats of all partitions. Otherwise the first record would be sent alone, and the others
	// only after its answer.
	leastLinger = time.Millisecond
	// Shorter than a broker's own limit (connections.max.idle.ms, ten minutes), so that the broker
	// does not close a connection just as a claim is about to be sent.
	idleConnection = 9 * time.Minute
)

// parse translates the properties of a client, and returns an error with all that it cannot
// translate. Times that are not set are librdkafka's defaults. given are the login mechanisms that
// options provide.
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
	if s.serverSide && len(s.balancers) > 0 {
		faults = append(faults, errors.New("partition.assignment.strategy: has no effect with group.protocol=consumer: use group.remote.assignor"))
	}
	if s.readMax > 0 && s.readMax < s.fetchMax {
		faults = append(faults, fmt.Errorf("receive.message.max.bytes=%d: must be at least fetch.max.bytes=%d", s.readMax, s.fetchMax))
	}
	if err := errors.Join(s.security.load(given), s.security.unused(props)); err != nil {
		faults = append(faults, err)
	}
	for _, protocol := range s.protocols {
		if protocol != s.security.protocol {
			faults = append(faults, fmt.Errorf("bootstrap.servers: %s:// does not match security.protocol=%s", protocol, s.security.protocol))
		}
	}
	if len(faults) == 0 {
		return s, nil
	}
	return nil, fmt.Errorf("client refuses its properties: %w", errors.Join(faults...))
}

// property says what one of librdkafka's properties does.
type property struct {
	names []string // the first is the usual name
	means string   // for docs/clients.md
	set   func(s *settings, value string) error
}

// apply sets the property. An empty value means that it is not set, as with librdkafka. Errors
// show a value only if it is known not to be secret.
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

// known returns a property of the table. A property that is missing there is refused.
func known(name string) *property {
	for i := range table {
		if slices.ContainsFunc(table[i].names, func(n string) bool { return n == name || strings.HasSuffix(n, ".") && strings.HasPrefix(name, n) }) {
			return &table[i]
		}
	}
	return nil
}

// opts returns the options that the user's options may override.
func (s *settings) opts() []kgo.Opt {
	opts := append([]kgo.Opt{kgo.ConnIdleTimeout(idleConnection), kgo.MaxVersions(requestVersions())}, s.base...)
	opts = append(append(opts, s.sizes()...),
		kgo.RetryBackoffFn(s.retryBackoff),
		kgo.MetadataMinAge(s.metadata[0]), kgo.MetadataMaxAge(max(s.metadata[0], s.metadata[1])),
	)
	switch s.kind {
	case forProducer:
		opts = append(opts, kgo.ProducerBatchCompression(s.compression.codec()))
	case forGroup:
		opts = append(opts, s.assignment()...)
	case forReader:
	}
	return append(opts, s.security.opts()...)
}

// assignment returns the options for how a group assigns partitions.
func (s *settings) assignment() []kgo.Opt {
	switch {
	case s.serverSide && s.assignor == "range":
		return []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())}
	case s.serverSide:
		return []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())}
	case len(s.balancers) > 0:
		return []kgo.Opt{kgo.Balancers(s.balancers...)}
	}
	return nil
}

// sizes returns the options for the largest sizes. franz-go refuses a size that does not fit into
// its default of another size. So the other size follows, unless it is set.
func (s *settings) sizes() (opts []kgo.Opt) {
	const connection, fetch = 100 << 20, 50 << 20 // franz-go's defaults
	if s.fetchMax > 0 || s.readMax > 0 {
		opts = append(opts,
			kgo.FetchMaxBytes(cmp.Or(s.fetchMax, min(fetch, s.readMax))),
			kgo.BrokerMaxReadBytes(cmp.Or(s.readMax, max(connection, s.fetchMax))))
	}
	if s.readMax > 0 { // librdkafka limits unpacked batches by it, too
		opts = append(opts, kgo.MaxDecompressBatchBytes(int(s.readMax)))
	}
	if s.batchMax > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(s.batchMax), kgo.BrokerMaxWriteBytes(max(connection, s.batchMax)))
	}
	return opts
}

// requestVersions are franz-go's, but lower for ApiVersions, the first request on every connection.
// Brokers up to Kafka 4.3 refuse its version 5 (KIP-1242), and franz-go asks again: a round trip more
// per connection.
func requestVersions() *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(kmsg.ApiVersions.Int16(), 4)
	return v
}

// retryBackoff doubles with each failure, like librdkafka's, with a random fifth more or less, so
// that many clients that failed together do not retry together.
func (s *settings) retryBackoff(failures int) time.Duration {
	d := float64(s.backoff) * math.Pow(2, float64(min(max(failures, 1), 20)-1))
	d = min(d*(0.8+0.4*rand.Float64()), float64(max(s.backoffMax, s.backoff)))
	return time.Duration(d)
}

// The types of values.

func text(set func(*settings, string)) func(*settings, string) error {
	return func(s *settings, v string) error { set(s, v); return nil }
}

func option[T kgo.Opt](make func(string) T) func(*settings, string) error {
	return text(func(s *settings, v string) { s.base = append(s.base, make(v)) })
}

// number parses an integer within bounds.
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

// millis parses a time in milliseconds, which may have a fraction.
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

// wait parses a time for an option. franz-go refuses less than least, so it gets at least that.
func wait[T kgo.Opt](least, most time.Duration, make func(time.Duration) T) func(*settings, string) error {
	return millis(0, most, func(s *settings, d time.Duration) { s.base = append(s.base, make(max(d, least))) })
}

// choice parses one of several words.
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

// only refuses all but the given words, which change nothing.
func only(words ...string) func(*settings, string) error {
	return choice(func(*settings, string) {}, words...)
}

func truth(set func(*settings, bool)) func(*settings, string) error {
	return choice(func(s *settings, v string) { set(s, v == "true") }, "true", "false")
}
