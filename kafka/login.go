package kafka

import (
	"context"
	"time"
)

// Token is a token for SASL/OAUTHBEARER.
type Token struct {
	// Value is sent to the broker; most brokers expect a JWT. It is never logged.
	Value string
	// Expires is when the token expires, by the wall clock. The library asks for a new one after
	// four fifths of the time until then.
	Expires time.Time
	// Principal appears in the client's own log. The broker takes the principal from Value. May be empty.
	Principal string
	// Extensions are sent to the broker with Value (RFC 7628, KIP-342). Names consist of letters,
	// and must not be "auth"; values are ASCII, and not empty.
	Extensions map[string]string
}

// Login connects a Provider's clients to the library when they log in by tokens.
type Login struct {
	// Token returns a token that is valid at the time of the call, and caches it: it gets a new
	// one when only a fifth of the lifetime is left, and returns the former one while it cannot
	// get a new one. An error that is an ErrAuthentication means that there will be no token. It
	// returns when ctx is done, and may be called concurrently. It is nil if properties say how
	// to get tokens.
	Token func(context.Context) (Token, error)
	// Failed receives the error of a client that gets tokens by itself and could not get one:
	// at each attempt, or whenever the error changes. It does not block, and may be called
	// concurrently. Never nil.
	Failed func(error)
}

// LoginProvider is implemented by a Provider whose clients can log in with the tokens of
// Config.LoginToken. The library asks it for another Provider whose clients do so, and uses that
// instead. A Provider that wraps another one and hides this method cannot log in like that.
type LoginProvider interface {
	Provider
	WithLogin(Login) Provider
}

// ConfigMap holds librdkafka's configuration properties by their own names. Values are strings, booleans or integers.
type ConfigMap map[string]any
