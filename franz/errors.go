package franz

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/kafka"
)

var errClosed = errors.New("client is closed")

// clientError is an error of the client: what was being tried, the client's own words, and its
// kind (kafka.ErrUnknownTopic and so on).
type clientError struct {
	doing string
	err   error
	kind  error // nil for a passing error
}

func (e *clientError) Error() string {
	if e.kind == nil {
		return e.doing + ": " + e.err.Error()
	}
	return e.doing + ": " + e.kind.Error() + ": " + e.err.Error()
}

func (e *clientError) Unwrap() []error {
	if e.kind == nil {
		return []error{e.err}
	}
	return []error{e.err, e.kind}
}

// classify adds to an error what was being tried, and the kind of the error. Nil stays nil.
func classify(doing string, err error) error {
	if err == nil {
		return nil
	}
	return &clientError{doing: doing, err: err, kind: kindOf(err)}
}

// passing reports whether an error is of no particular kind.
func passing(err error) bool {
	ce, ok := errors.AsType[*clientError](err)
	return !ok || ce.kind == nil
}

// kinds are the broker's errors that have a meaning for the library.
var kinds = map[*kerr.Error]error{
	kerr.UnknownTopicOrPartition:            kafka.ErrUnknownTopic,
	kerr.UnknownTopicID:                     kafka.ErrUnknownTopic,
	kerr.TopicAlreadyExists:                 kafka.ErrTopicExists,
	kerr.InvalidConfig:                      kafka.ErrSettings,
	kerr.PolicyViolation:                    kafka.ErrSettings,
	kerr.InvalidReplicationFactor:           kafka.ErrSettings,
	kerr.InvalidTimestamp:                   kafka.ErrTimestamp,
	kerr.OffsetOutOfRange:                   kafka.ErrOutOfRange,
	kerr.TopicAuthorizationFailed:           kafka.ErrTopicAuthorization,
	kerr.GroupAuthorizationFailed:           kafka.ErrGroupAuthorization,
	kerr.ClusterAuthorizationFailed:         kafka.ErrAuthorization,
	kerr.TransactionalIDAuthorizationFailed: kafka.ErrAuthorization,
	kerr.SaslAuthenticationFailed:           kafka.ErrAuthentication,
	kerr.UnsupportedSaslMechanism:           kafka.ErrAuthentication,
	kerr.IllegalSaslState:                   kafka.ErrAuthentication,
	kerr.FencedInstanceID:                   kafka.ErrInstanceFenced,
	kerr.UnreleasedInstanceID:               kafka.ErrInstanceFenced,
}

// kindOf returns the kind of an error, or nil.
func kindOf(err error) error {
	// By the time of this error, the client has moved its position.
	if _, ok := errors.AsType[*kgo.ErrDataLoss](err); ok {
		return kafka.ErrTruncated
	}
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		return kinds[ke]
	}
	if errors.Is(err, kafka.ErrAuthentication) || refusedByTLS(err) || refusedToken(err) {
		return kafka.ErrAuthentication
	}
	return nil
}

// refusedToken reports whether a broker has refused a token with data only, without an error code
// (RFC 7628, 3.2.2). franz-go has no error type for that (pkg/sasl/oauth).
func refusedToken(err error) bool {
	return strings.Contains(err.Error(), "OAUTHBEARER authentication failed: ")
}

// refusedByTLS reports whether a certificate was refused, by either side, rather than that a connection was lost.
func refusedByTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	// The type of an alert in which the other side refuses this side's certificate is not exported.
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" {
		return false
	}
	alert := op.Err.Error()
	return strings.Contains(alert, "certificate") || strings.Contains(alert, "unknown authority") || strings.Contains(alert, "access denied")
}

// ended reports whether the caller only stopped waiting, or closed the client.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed)
}
