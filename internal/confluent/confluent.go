//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/goneli/neli/kafka"
)

// New returns the Provider.
func New() (kafka.Provider, error) { return confluent{}, nil }

type confluent struct{ login kafka.Login }

// WithLogin implements kafka.LoginProvider.
func (confluent) WithLogin(l kafka.Login) kafka.Provider { return confluent{l} }

// confluentCloseBound limits Close. librdkafka takes up to 5 s to say goodbye to a coordinator
// that does not answer, and any time while the resolver hangs. Past the bound, the client goes on
// closing in the background.
const confluentCloseBound = 5500 * time.Millisecond

var errClientClosed = errors.New("client is closed")

// confluentConfig turns properties into the client's own form. ConfigMap.SetKey would also accept
// the prefix "{topic}.": such a property makes the client drop acks and auto.offset.reset.
func confluentConfig(props map[string]string, logs *confluentLogs) ck.ConfigMap {
	config := ck.ConfigMap{}
	for name, value := range props {
		config[name] = value
	}
	// By default the librdkafka that comes with the client trusts only the file that CentOS has.
	if logs.login.endpoint != "" && props["https.ca.location"] == "" && props["https.ca.pem"] == "" {
		config["https.ca.location"] = "probe"
	}
	config["go.logs.channel.enable"] = true
	config["go.logs.channel"] = logs.events
	return config
}

// confluentLogs passes one client's log lines to a slog.Logger.
type confluentLogs struct {
	log     *slog.Logger
	login   confluentLogin
	events  chan ck.LogEvent
	done    chan struct{}
	failure atomic.Pointer[string] // why a connection last failed
}

// confluentStats reads in a client's statistics how long brokers have throttled it.
type confluentStats struct{ throttled atomic.Int64 }

func (s *confluentStats) Throttled() time.Duration { return time.Duration(s.throttled.Load()) }

func (s *confluentStats) count(statistics string) {
	var stats struct {
		Brokers map[string]struct {
			Throttle struct {
				Sum int64 // in milliseconds, since the previous statistics
			}
		}
	}
	if err := json.Unmarshal([]byte(statistics), &stats); err != nil {
		return // a later version of the client may have another format
	}
	for _, b := range stats.Brokers {
		s.throttled.Add(int64(time.Duration(b.Throttle.Sum) * time.Millisecond))
	}
}

func (c confluent) logs(log *slog.Logger, props map[string]string) *confluentLogs {
	l := &confluentLogs{
		log:    log,
		login:  confluentLogin{Login: c.login},
		events: make(chan ck.LogEvent, 64),
		done:   make(chan struct{}),
	}
	if strings.EqualFold(props["sasl.oauthbearer.method"], "oidc") {
		l.login.endpoint = props["sasl.oauthbearer.token.endpoint.url"]
	}
	go l.run()
	return l
}

func (l *confluentLogs) run() {
	defer close(l.done)
	for ev := range l.events {
		if _, why, ok := strings.Cut(ev.Message, "]: "); ok && ev.Tag == "FAIL" {
			l.failed(why)
		}
		l.login.heard(&ev)
		// 3 is syslog's "error". A lost connection is not worth a warning: librdkafka reconnects by
		// itself and logs each loss once per thread, and a call that fails because of it says why.
		level := slog.LevelDebug
		if ev.Level <= 3 && ev.Tag != "FAIL" {
			level = slog.LevelWarn
		}
		if ctx := context.Background(); l.log.Enabled(ctx, level) {
			l.log.Log(ctx, level, "Kafka client", "text", ev.Message, "client", ev.Name, "tag", ev.Tag)
		}
	}
}

// failed notes why a connection failed. Some reasons are only in the client's log, and seldom repeated.
func (l *confluentLogs) failed(why string) {
	l.failure.Store(&why)
}

// explain adds to a passing error why the last connection failed.
func (l *confluentLogs) explain(err error) error {
	if why := l.failure.Load(); why != nil {
		if confluentAdvertised.MatchString(*why) {
			return fmt.Errorf("%w (%w: %s)", err, kafka.ErrAdvertised, *why)
		}
		if strings.Contains(*why, confluentGreeting) {
			return fmt.Errorf("%w (%w: %s)", err, kafka.ErrUnserved, *why)
		}
		return fmt.Errorf("%w (%s)", err, *why)
	}
	return l.login.explain(err)
}

// confluentAdvertised matches a failure to connect to a broker of which another broker told: its name ends
// with its id. The name of a server that the user has given ends with "bootstrap".
var confluentAdvertised = regexp.MustCompile(`^\S+/\d+: (Failed to resolve|Connect to )`)

// confluentGreeting is part of the reason why a connection failed if a broker accepted it, and then closed
// it or did not answer the client's first request.
const confluentGreeting = "in state APIVERSION_QUERY"

// close returns when the last line has been written. The client must be closed.
func (l *confluentLogs) close() {
	close(l.events)
	<-l.done
}

// refused closes l for a client that could not be made, and returns the reason.
func (l *confluentLogs) refused(err error) error {
	l.close()
	return fmt.Errorf("client refuses its properties: %w", err)
}

// confluentFaults finds all properties that the client refuses. The client names only one at a
// time; err names the first. Each attempt leaves out the properties named before. make makes an
// attempt, and closes the client that it gets.
func confluentFaults(err error, config ck.ConfigMap, make func(*ck.ConfigMap) error) error {
	var faults []error
	for ; err != nil; err = make(&config) {
		faults = append(faults, err)
		name, ok := confluentRefuses(err, config)
		if !ok {
			break
		}
		delete(config, name)
	}
	return errors.Join(faults...)
}

var confluentQuoted = regexp.MustCompile(`"([^"]+)"`)

// confluentRefuses returns the property that an error names.
func confluentRefuses(err error, config ck.ConfigMap) (string, bool) {
	for _, quoted := range confluentQuoted.FindAllStringSubmatch(err.Error(), -1) {
		if _, ok := config[quoted[1]]; ok {
			return quoted[1], true
		}
	}
	return "", false
}

// confluentClose runs shut, which closes a client, and waits for it up to confluentCloseBound.
// shut cannot be interrupted: past the bound it goes on in the background.
func confluentClose(what string, shut func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		shut()
	}()
	bound := time.NewTimer(confluentCloseBound)
	defer bound.Stop()
	select {
	case <-done:
		return nil
	case <-bound.C:
		return fmt.Errorf("%s did not close within %v and goes on closing in the background", what, confluentCloseBound)
	}
}

// confluentError is a client's error: what was being tried, the client's own words, and its kind
// (ErrUnknownTopic and so on).
type confluentError struct {
	doing string
	err   error
	kind  error // nil for a passing error
	fatal bool
}

func (e *confluentError) Error() string {
	text := confluentNamed(e.err.Error())
	if e.kind == nil {
		return e.doing + ": " + text
	}
	return e.doing + ": " + e.kind.Error() + ": " + text
}

func (e *confluentError) Unwrap() []error {
	causes := []error{e.err}
	if e.kind != nil {
		causes = append(causes, e.kind)
	}
	if e.fatal {
		causes = append(causes, kafka.ErrClientFatal)
	}
	return causes
}

// asConfluentError classifies an error of the client. Nil stays nil.
func asConfluentError(doing string, err error) error {
	if err == nil {
		return nil
	}
	out := &confluentError{doing: doing, err: err}
	var ke ck.Error
	if !errors.As(err, &ke) {
		return out
	}
	if ke.Code() == ck.ErrNoError {
		return nil // the client's way to say nil within results
	}
	out.kind = confluentKind(ke)
	out.fatal = ke.IsFatal() || ke.Code() == ck.ErrFatal
	if out.kind == nil && out.fatal {
		out.kind = kafka.ErrClientFatal
	}
	return out
}

func confluentKind(e ck.Error) error {
	switch e.Code() {
	case ck.ErrUnknownTopic, ck.ErrUnknownTopicOrPart, ck.ErrUnknownPartition, ck.ErrUnknownTopicID:
		return kafka.ErrUnknownTopic
	case ck.ErrTopicAlreadyExists:
		return kafka.ErrTopicExists
	case ck.ErrInvalidConfig, ck.ErrPolicyViolation, ck.ErrInvalidReplicationFactor:
		return kafka.ErrSettings
	case ck.ErrInvalidTimestamp:
		return kafka.ErrTimestamp
	case ck.ErrLogTruncation:
		return kafka.ErrTruncated
	case ck.ErrAutoOffsetReset, ck.ErrOffsetOutOfRange:
		if confluentTruncated(e.String()) {
			return kafka.ErrTruncated
		}
		return kafka.ErrOutOfRange
	case ck.ErrTopicAuthorizationFailed:
		return kafka.ErrTopicAuthorization
	case ck.ErrGroupAuthorizationFailed:
		return kafka.ErrGroupAuthorization
	case ck.ErrClusterAuthorizationFailed, ck.ErrTransactionalIDAuthorizationFailed:
		return kafka.ErrAuthorization
	case ck.ErrSaslAuthenticationFailed, ck.ErrUnsupportedSaslMechanism, ck.ErrIllegalSaslState:
		return kafka.ErrAuthentication
	case ck.ErrSsl, ck.ErrAuthentication:
		if why, ok := confluentNoToken(e.String()); ok && !confluentTokenRefused(why) || confluentCutShort(e.String()) {
			return nil
		}
		return kafka.ErrAuthentication
	case ck.ErrTransport:
		if confluentRefusedLate(e.String()) {
			return kafka.ErrAuthentication
		}
	case ck.ErrFencedInstanceID, ck.ErrUnreleasedInstanceID:
		return kafka.ErrInstanceFenced
	}
	return nil
}

// Refused reports whether an error of a client says that a broker refused the credentials, or that one side refused the
// other's certificate.
func Refused(e ck.Error) bool { return confluentKind(e) == kafka.ErrAuthentication }

// confluentCutShort reports whether an authentication was interrupted rather than refused, for
// example because a broker went away halfway ("…: Local: Broker transport failure"). librdkafka gives
// both the same code. Only a refusal is final.
func confluentCutShort(text string) bool { return strings.Contains(text, "Local: ") }

// confluentTruncated finds a truncation among the out-of-range errors. With
// auto.offset.reset=error, librdkafka gives both the same code, and only the text names a
// truncation.
func confluentTruncated(text string) bool {
	return strings.Contains(text, ck.ErrLogTruncation.String())
}

// confluentRefusedLate finds a refused client certificate among lost connections. With TLS 1.3
// the broker refuses it only after the client's handshake is done, and librdkafka reports a
// failed read.
func confluentRefusedLate(text string) bool {
	_, alert, found := strings.Cut(text, "SSL routines:")
	return found && strings.Contains(alert, "alert") &&
		(strings.Contains(alert, "certificate") || strings.Contains(alert, "unknown ca") || strings.Contains(alert, "access denied"))
}
