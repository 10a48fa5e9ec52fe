package kafka

import (
	"context"
	"time"
)

// Token is what a client logs in with by SASL/OAUTHBEARER.
type Token struct {
	// Value is what the broker is sent: most brokers want a JWT. Never logged.
	Value string
	// Expires is when the token ends, by the wall clock. A new one is asked for when four
	// fifths of the time until then are over.
	Expires time.Time
	// Principal is whom the client's own log names. The broker takes the principal from
	// Value. May be empty.
	Principal string
	// Extensions are sent to the broker along with Value (RFC 7628, KIP-342). Names consist of
	// letters; "auth" is not one.
	Extensions map[string]string
}

// Login is what the library asks of a Provider's clients, and wants to hear from them, when
// they log in by tokens.
type Login struct {
	// Token returns a token that is valid at the time of the call, and remembers it: it asks for
	// a new one when the former has but a fifth of its time left, and returns the former
	// while it cannot have a new one. An error that is an ErrAuthentication says that there
	// will be none. It returns when ctx is done, may be called concurrently, and is nil
	// if properties say how tokens are had.
	Token func(context.Context) (Token, error)
	// Failed is told why a client could not have a token, for those that clients ask for by
	// themselves: each time it was tried, or each time that the reason is another one. It does not wait, and may be
	// called concurrently. Never nil.
	Failed func(error)
}

// LoginProvider is a Provider whose clients can log in with the tokens of Config.Token. The
// library asks it for another Provider, whose clients do, and uses that in its place. A
// Provider that wraps another one and hides this method can not.
type LoginProvider interface {
	Provider
	WithLogin(Login) Provider
}
