// Package login manages the tokens that Kafka clients log in with. It keeps a token, replaces it
// before it expires, and reports what is wrong with it.
package login

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/goneli/neli/kafka"
	"golang.org/x/sync/singleflight"
)

const (
	// Patience is how long the issuer of tokens may take to answer.
	Patience = 10 * time.Second
	// Grace is how long an attempt whose context has ended may take to return its error.
	Grace = time.Second
	// pauseLeast and pauseMost bound the pause after a failed attempt, which doubles with each.
	pauseLeast = time.Second
	pauseMost  = 10 * time.Second
)

// Source keeps a token for any number of clients. Its methods may be called concurrently. It has
// no goroutines except those of attempts, which Close ends.
type Source struct {
	what   string // the subject of errors: a property, or a field of Config
	fetch  func(context.Context) (kafka.Token, error)
	failed func(error)
	flight singleflight.Group
	ctx    context.Context // of all attempts
	cancel context.CancelFunc
	busy   chan struct{} // a lock: the attempt has it, and Close after that

	mu    sync.Mutex
	token kafka.Token
	renew time.Time     // when to ask for the next token
	err   error         // of the last attempt
	retry time.Time     // when to try again after err
	pause time.Duration // the pause before retry
}

// NewSource makes a source. It calls fetch for tokens, one call at a time, and failed with each
// failure. Errors begin with what.
func NewSource(what string, fetch func(context.Context) (kafka.Token, error), failed func(error)) *Source {
	ctx, cancel := context.WithCancel(context.Background())
	return &Source{what: what, fetch: fetch, failed: failed, ctx: ctx, cancel: cancel, busy: make(chan struct{}, 1)}
}

// Close ends the attempt in progress, and waits until it has returned or ctx is done. Afterwards
// fetch and failed are no longer called. An attempt that ignores its context may go on, but nothing
// about it is reported.
func (s *Source) Close(ctx context.Context) {
	s.cancel()
	select {
	case s.busy <- struct{}{}:
		<-s.busy
	case <-ctx.Done():
	}
}

var errLate = fmt.Errorf("no answer within %v", Patience)

// Token implements kafka.Login.Token.
func (s *Source) Token(ctx context.Context) (kafka.Token, error) {
	token, err, due := s.have()
	if !due {
		return token, err
	}
	limit := time.NewTimer(Patience + Grace)
	defer limit.Stop()
	select {
	case <-s.flight.DoChan("", s.attempt):
		// The attempt has stored its outcome.
	case <-limit.C:
		// An attempt that ignores its context goes on. The next call waits for the same attempt.
		s.note(kafka.Token{}, s.named(errLate))
	case <-ctx.Done():
		return kafka.Token{}, s.named(ctx.Err())
	}
	token, err, _ = s.have()
	return token, err
}

// have returns the token if it is valid, otherwise the reason why there is none. due says whether
// it is time to ask for another one.
func (s *Source) have() (kafka.Token, error, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	due := s.due(now)
	if now.Before(s.token.Expires) {
		return s.token, nil, due
	}
	err := s.err
	if err == nil {
		err = s.named(errors.New("the token has expired, and there is no other one yet"))
	}
	return kafka.Token{}, err, due
}

// due reports whether it is time to ask for another token. The caller holds the lock.
func (s *Source) due(now time.Time) bool {
	return now.Round(0).After(s.renew) && now.After(s.retry)
}

// attempt asks for a token once, unless the Source is closed, or the attempt of another caller has
// ended since this one found that a token was due.
func (s *Source) attempt() (any, error) {
	s.busy <- struct{}{}
	defer func() { <-s.busy }()
	if _, _, due := s.have(); !due || s.ctx.Err() != nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, Patience)
	defer cancel()
	token, err := s.fetch(ctx)
	if err == nil {
		err = Check(token, time.Now())
	}
	s.note(token, s.named(err))
	return nil, nil
}

// note stores the outcome of an attempt, and reports a failure, unless the Source is closed. A late
// attempt is noted once, even if several callers wait for it, and not if it has just ended.
func (s *Source) note(token kafka.Token, err error) {
	s.mu.Lock()
	now := time.Now()
	if errors.Is(err, errLate) && !s.due(now) {
		s.mu.Unlock()
		return
	}
	s.err = err
	if err == nil {
		s.token, s.pause, s.retry = token, 0, time.Time{}
		s.renew = now.Round(0).Add(Soon(token, now))
	} else {
		s.pause = min(max(pauseLeast, 2*s.pause), pauseMost)
		s.retry = now.Add(s.pause)
	}
	s.mu.Unlock()
	if err != nil && s.ctx.Err() == nil {
		s.failed(err)
	}
}

func (s *Source) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.what, err)
}

// Soon returns how long to wait before asking for the next token.
func Soon(token kafka.Token, now time.Time) time.Duration {
	return token.Expires.Sub(now) / 5 * 4 // in this order, since a token may be valid for ages
}

// Check returns what is wrong with a token, or nil.
func Check(token kafka.Token, now time.Time) error {
	switch {
	case token.Value == "":
		return Refused(errors.New("the token is empty"))
	case token.Expires.IsZero():
		return Refused(errors.New("the token has no expiry, so it could not be replaced in time"))
	case !token.Expires.After(now):
		return Refused(fmt.Errorf("the token expired %v ago (%v): compare the clocks of this machine and of the issuer",
			now.Sub(token.Expires).Round(time.Second), token.Expires.UTC().Format(time.RFC3339)))
	}
	for name, value := range token.Extensions {
		if !Extension(name, value) {
			return Refused(fmt.Errorf("extension %q of the token: its name must consist of letters, and not be auth, and its value must be ASCII, and not empty", name))
		}
	}
	return nil
}

// extension matches name=value of an extension (RFC 7628, 3.1).
var extension = regexp.MustCompile(`^[A-Za-z]+=[!-~ \t\r\n]+$`)

// Extension reports whether brokers accept an extension. librdkafka itself refuses all others.
func Extension(name, value string) bool {
	return name != "auth" && extension.MatchString(name+"="+value)
}

// Refused marks an error as permanent. Trying again would not help, so it ends a process that has had no token yet.
func Refused(err error) error { return refused{err} }

type refused struct{ error }

func (e refused) Unwrap() []error { return []error{e.error, kafka.ErrAuthentication} }
