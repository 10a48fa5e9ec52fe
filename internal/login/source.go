// Package login has the tokens that Kafka clients log in with: it keeps one, has it replaced
// before it ends, and says what is wrong with it.
package login

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goneli/neli/kafka"
	"golang.org/x/sync/singleflight"
)

const (
	// Patience is how long whoever issues tokens may take to answer.
	Patience = 10 * time.Second
	// grace is for an attempt whose context is over, to say what it has waited for.
	grace = time.Second
	// pauseLeast and pauseMost are between two attempts that fail; the pause doubles.
	pauseLeast = time.Second
	pauseMost  = 10 * time.Second
)

// Source keeps a token for any number of clients. Its methods may be called concurrently.
// It starts no goroutine that outlives an attempt.
type Source struct {
	what   string // is named by errors: a property, or a field of Config
	fetch  func(context.Context) (kafka.Token, error)
	failed func(error)
	flight singleflight.Group

	mu    sync.Mutex
	token kafka.Token
	renew time.Time     // of token: when to ask for the next one
	err   error         // of the last attempt
	retry time.Time     // after err
	pause time.Duration // before that
}

// NewSource makes a source that asks fetch, one call at a time, and tells failed of what goes wrong. what is
// named by errors.
func NewSource(what string, fetch func(context.Context) (kafka.Token, error), failed func(error)) *Source {
	return &Source{what: what, fetch: fetch, failed: failed}
}

// Token is kafka.Login.Token.
func (s *Source) Token(ctx context.Context) (kafka.Token, error) {
	token, err, due := s.have()
	if !due {
		return token, err
	}
	limit := time.NewTimer(Patience + grace)
	defer limit.Stop()
	select {
	case <-s.flight.DoChan("", s.attempt):
		// The attempt has kept its outcome.
	case <-limit.C:
		// An attempt that ignores its context goes on; the next call waits for the same one.
		s.note(kafka.Token{}, s.named(fmt.Errorf("no answer within %v", Patience)))
	case <-ctx.Done():
		return kafka.Token{}, s.named(ctx.Err())
	}
	token, err, _ = s.have()
	return token, err
}

// have returns the token if it is valid, else why there is none, and whether it is time to ask for
// another one.
func (s *Source) have() (kafka.Token, error, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	due := now.Round(0).After(s.renew) && now.After(s.retry)
	if now.Before(s.token.Expires) {
		return s.token, nil, due
	}
	err := s.err
	if err == nil {
		err = s.named(errors.New("the token has ended, and there is no other one yet"))
	}
	return kafka.Token{}, err, due
}

// attempt asks once.
func (s *Source) attempt() (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	token, err := s.fetch(ctx)
	if err == nil {
		err = Check(token, time.Now())
	}
	s.note(token, s.named(err))
	return nil, nil
}

// note keeps the outcome of an attempt, and tells of one that has failed.
func (s *Source) note(token kafka.Token, err error) {
	s.mu.Lock()
	now := time.Now()
	s.err = err
	if err == nil {
		s.token, s.pause, s.retry = token, 0, time.Time{}
		s.renew = now.Round(0).Add(Soon(token, now))
	} else {
		s.pause = min(max(pauseLeast, 2*s.pause), pauseMost)
		s.retry = now.Add(s.pause)
	}
	s.mu.Unlock()
	if err != nil {
		s.failed(err)
	}
}

func (s *Source) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.what, err)
}

// Soon is how long to wait before the next token is asked for.
func Soon(token kafka.Token, now time.Time) time.Duration {
	return token.Expires.Sub(now) * 4 / 5
}

// Check says what is wrong with a token.
func Check(token kafka.Token, now time.Time) error {
	switch {
	case token.Value == "":
		return Refused(errors.New("the token is empty"))
	case token.Expires.IsZero():
		return Refused(errors.New("the token does not say when it ends: without that it could not be replaced in time"))
	case !token.Expires.After(now):
		return Refused(fmt.Errorf("the token has ended %v ago (%v): compare the clocks of this machine and of who issues it",
			now.Sub(token.Expires).Round(time.Second), token.Expires.UTC().Format(time.RFC3339)))
	}
	return nil
}

// Refused marks an error as one that will come again: who had no token before ends with it.
func Refused(err error) error { return refused{err} }

type refused struct{ error }

func (e refused) Unwrap() []error { return []error{e.error, kafka.ErrAuthentication} }
