package login

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

// issuer issues tokens that are valid for a minute, until it is told to refuse.
type issuer struct {
	asked  atomic.Int64
	err    atomic.Pointer[error]
	hangs  atomic.Bool
	failed atomic.Int64
}

func (i *issuer) issue(ctx context.Context) (kafka.Token, error) {
	i.asked.Add(1)
	if i.hangs.Load() {
		<-ctx.Done()
		return kafka.Token{}, ctx.Err()
	}
	if err := i.err.Load(); err != nil {
		return kafka.Token{}, *err
	}
	return kafka.Token{Value: "value", Expires: time.Now().Add(time.Minute)}, nil
}

func (i *issuer) source() *Source {
	return NewSource("Config.LoginToken", i.issue, func(error) { i.failed.Add(1) })
}

func TestTokenIsRenewedBeforeItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{}
		s := i.source()
		first, err := s.Token(t.Context())
		require.NoError(t, err)
		time.Sleep(48 * time.Second)
		same, err := s.Token(t.Context())
		require.NoError(t, err)
		require.Equal(t, first, same)
		time.Sleep(time.Millisecond)
		next, err := s.Token(t.Context())
		require.NoError(t, err)
		require.NotEqual(t, first, next)
		require.EqualValues(t, 2, i.asked.Load())
		require.Zero(t, i.failed.Load())
	})
}

// Several callers find at the same time that a token is due. If one of them comes so late that
// another one's attempt has just ended, it uses that outcome and asks for nothing.
func TestLateCallerUsesAnotherCallersOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{}
		s := i.source()
		first, err := s.Token(t.Context())
		require.NoError(t, err)
		_, _ = s.attempt()
		token, err := s.Token(t.Context())
		require.NoError(t, err)
		require.Equal(t, first, token)
		require.EqualValues(t, 1, i.asked.Load())

		refuses := errors.New("not today")
		i.err.Store(&refuses)
		time.Sleep(49 * time.Second)
		_, err = s.Token(t.Context())
		require.NoError(t, err)
		_, _ = s.attempt()
		require.EqualValues(t, 1, i.failed.Load(), "it is not time for the next attempt")
	})
}

// A token is used until it expires, and each failed attempt to replace it is reported.
func TestRefusedRenewalIsRetriedAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{}
		s := i.source()
		first, err := s.Token(t.Context())
		require.NoError(t, err)
		refuses := errors.New("not today")
		i.err.Store(&refuses)
		began := time.Now()
		for time.Since(began) < 59*time.Second {
			time.Sleep(100 * time.Millisecond)
			token, err := s.Token(t.Context())
			require.NoError(t, err)
			require.Equal(t, first, token)
		}
		require.EqualValues(t, 4, i.failed.Load(), "after 48, 49, 51 and 55 s")
		time.Sleep(2 * time.Second)
		_, err = s.Token(t.Context())
		require.EqualError(t, err, "Config.LoginToken: not today")
		require.NotErrorIs(t, err, kafka.ErrAuthentication, "takes a refusal for final, though it has had a token")
		i.err.Store(nil)
		time.Sleep(10 * time.Second)
		_, err = s.Token(t.Context())
		require.NoError(t, err)
	})
}

func TestHangingAttemptDelaysCallersOnlyBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var running, most atomic.Int64
		s := NewSource("Config.LoginToken", func(context.Context) (kafka.Token, error) { // ignores its context
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			<-release
			return kafka.Token{Value: "late", Expires: time.Now().Add(time.Hour)}, nil
		}, func(error) {})
		began := time.Now()
		_, err := s.Token(t.Context())
		require.EqualError(t, err, "Config.LoginToken: no answer within 10s")
		require.Equal(t, Patience+Grace, time.Since(began))
		time.Sleep(pauseMost)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = s.Token(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		close(release)
		synctest.Wait()
		token, err := s.Token(t.Context())
		require.NoError(t, err)
		require.Equal(t, "late", token.Value)
		require.EqualValues(t, 1, most.Load())
	})
}

// Several clients wait for one attempt. If it hangs, that counts as one failure, however many wait.
func TestHangingAttemptCountsAsOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		var failed atomic.Int64
		s := NewSource("Config.LoginToken", func(context.Context) (kafka.Token, error) { // ignores its context
			<-release
			return kafka.Token{Value: "late", Expires: time.Now().Add(time.Hour)}, nil
		}, func(error) { failed.Add(1) })
		for range 3 {
			go func() { _, _ = s.Token(context.Background()) }()
		}
		time.Sleep(Patience + Grace)
		synctest.Wait()
		require.EqualValues(t, 1, failed.Load())
		require.Equal(t, pauseLeast, s.pause)
	})
}

// Close ends the attempt in progress and reports nothing about it. No other attempt follows.
func TestCloseEndsTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{}
		i.hangs.Store(true)
		s := i.source()
		asked := make(chan error, 1)
		go func() {
			_, err := s.Token(context.Background())
			asked <- err
		}()
		synctest.Wait()
		began := time.Now()
		s.Close(t.Context())
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, <-asked, context.Canceled)
		i.hangs.Store(false)
		time.Sleep(time.Hour)
		_, err := s.Token(t.Context())
		require.Error(t, err)
		s.Close(t.Context())
		require.EqualValues(t, 1, i.asked.Load())
		require.Zero(t, i.failed.Load())
	})
}

// Close waits for an attempt that ignores its context, until its own context ends.
func TestCloseWaitsForTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed atomic.Int64
		s := NewSource("Config.LoginToken", func(context.Context) (kafka.Token, error) {
			time.Sleep(3 * time.Second)
			return kafka.Token{}, errors.New("too late")
		}, func(error) { failed.Add(1) })
		go func() { _, _ = s.Token(context.Background()) }()
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Close(ctx)
		require.Equal(t, time.Second, time.Since(began))
		s.Close(t.Context())
		require.Equal(t, 3*time.Second, time.Since(began))
		synctest.Wait()
		require.Zero(t, failed.Load())
	})
}

func TestBadTokens(t *testing.T) {
	for says, token := range map[string]kafka.Token{
		"Config.LoginToken: the token is empty":              {Expires: time.Now().Add(time.Hour)},
		"Config.LoginToken: the token has no expiry":         {Value: "s3cret"},
		"Config.LoginToken: the token expired 1h0m0s ago (2": {Value: "s3cret", Expires: time.Now().Add(-time.Hour)},
		`Config.LoginToken: extension "auth" of the token`:   {Value: "s3cret", Expires: time.Now().Add(time.Hour), Extensions: map[string]string{"auth": "x"}},
		`Config.LoginToken: extension "pool-id" of the`:      {Value: "s3cret", Expires: time.Now().Add(time.Hour), Extensions: map[string]string{"pool-id": "x"}},
		`Config.LoginToken: extension "pool" of the token: `: {Value: "s3cret", Expires: time.Now().Add(time.Hour), Extensions: map[string]string{"pool": "s3cret\x01auth=x"}},
	} {
		s := NewSource("Config.LoginToken", func(context.Context) (kafka.Token, error) { return token, nil }, func(error) {})
		_, err := s.Token(t.Context())
		require.ErrorContains(t, err, says)
		require.ErrorIs(t, err, kafka.ErrAuthentication)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{}
		s := i.source()
		ctx, cancel := context.WithCancel(t.Context())
		var set, failed atomic.Int64
		go Keep(ctx, s.Token, func(kafka.Token) { set.Add(1) }, func(error) { failed.Add(1) })
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		require.GreaterOrEqual(t, set.Load(), int64(12))
		require.LessOrEqual(t, i.asked.Load(), int64(14))
		require.Zero(t, failed.Load())
		i.hangs.Store(true)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Positive(t, failed.Load())
		require.Positive(t, i.failed.Load())
		i.hangs.Store(false)
		before := set.Load()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Greater(t, set.Load(), before)
		cancel()
		synctest.Wait()
	})
}

// A source decides by the wall clock. If the clock was set forward, or went on while the machine
// was suspended, the source has a new token long before Keep's timer fires.
func TestKeepUsesATokenThatComesEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		get := func(context.Context) (kafka.Token, error) {
			if time.Since(began) < 10*time.Minute {
				return kafka.Token{Value: "former", Expires: began.Add(time.Hour)}, nil
			}
			return kafka.Token{Value: "next", Expires: began.Add(2 * time.Hour)}, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan string, 10)
		go Keep(ctx, get, func(token kafka.Token) { got <- token.Value }, func(err error) { t.Error(err) })
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		require.Equal(t, "former", <-got)
		require.Empty(t, got, "the same token is no other one")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Len(t, got, 1, "the client logs in with a token that may have expired")
		require.Equal(t, "next", <-got)
		cancel()
		synctest.Wait()
	})
}

// Keep looks for a new token every ten seconds at least. That must not delay the renewal of a short-lived one.
func TestKeepRenewsATokenThatIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var asked []time.Duration
		s := NewSource("Config.LoginToken", func(context.Context) (kafka.Token, error) {
			asked = append(asked, time.Since(began))
			return kafka.Token{Value: "value", Expires: time.Now().Add(30 * time.Second)}, nil
		}, func(error) {})
		ctx, cancel := context.WithCancel(t.Context())
		go Keep(ctx, s.Token, func(kafka.Token) {}, func(err error) { t.Error(err) })
		time.Sleep(59 * time.Second)
		synctest.Wait()
		require.Len(t, asked, 3)
		require.InDelta(t, 24, asked[1].Seconds(), 1.1)
		require.InDelta(t, 48, asked[2].Seconds(), 2.2)
		cancel()
		synctest.Wait()
	})
}

// A renewal that failed is tried again after ten seconds at most, however long the former token
// lasts (docs/security.md).
func TestKeepRetriesARenewalSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		s := NewSource("Config.LoginToken", func(context.Context) (kafka.Token, error) {
			if asked.Add(1) > 1 {
				return kafka.Token{}, errors.New("not today")
			}
			return kafka.Token{Value: "value", Expires: time.Now().Add(time.Hour)}, nil
		}, func(error) {})
		ctx, cancel := context.WithCancel(t.Context())
		go Keep(ctx, s.Token, func(kafka.Token) {}, func(err error) { t.Error(err) })
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		require.GreaterOrEqual(t, asked.Load(), int64(7), "asked in the two minutes since 48 minutes have passed")
		cancel()
		synctest.Wait()
	})
}

// A token that never expires may be given an expiry in the far future. It is not renewed before that.
func TestTokenWithAFarExpiryIsNotRenewed(t *testing.T) {
	for _, years := range []int{80, 5000} {
		require.Greater(t, Soon(kafka.Token{Expires: time.Now().AddDate(years, 0, 0)}, time.Now()), time.Hour, "%d years", years)
	}
}
