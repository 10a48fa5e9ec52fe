package neli

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/kafka"
)

// loginKafka is a mockKafka whose producers ask for a token when they are made.
type loginKafka struct {
	*mockKafka
	login kafka.Login
}

func (k *loginKafka) WithLogin(l kafka.Login) kafka.Provider { return &loginKafka{k.mockKafka, l} }

func (k *loginKafka) Producer(p map[string]string, log *slog.Logger) (kafka.Producer, error) {
	if k.login.Token != nil {
		go func() { _, _ = k.login.Token(context.Background()) }()
	}
	return k.mockKafka.Producer(p, log)
}

// tokens is a Config.LoginToken that does not answer.
type tokens struct {
	deaf            time.Duration // how long the call goes on after its context has ended
	asked, answered atomic.Int64
}

func (s *tokens) Token(ctx context.Context) (kafka.Token, error) {
	s.asked.Add(1)
	<-ctx.Done()
	time.Sleep(s.deaf)
	s.answered.Add(1)
	return kafka.Token{}, ctx.Err()
}

func (s *tokens) config(k *mockKafka) Config {
	return Config{LeaderGroupID: "g", Provider: &loginKafka{mockKafka: k}, LoginToken: s.Token,
		KafkaConfig: KafkaConfigMap{"security.protocol": "SASL_SSL"}}
}

func TestCloseEndsTheCallOfLoginToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s tokens
		var out said.Text
		cfg := s.config(newMockKafka())
		cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
		n, err := New(cfg)
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.EqualValues(t, 1, s.asked.Load())
		require.NoError(t, n.Close())
		require.EqualValues(t, 1, s.answered.Load(), "it goes on when Close has returned")
		time.Sleep(time.Minute)
		require.Zero(t, n.Stats().LoginFailures)
		require.NotContains(t, out.String(), "no token")
	})
}

func TestCloseNamesALoginTokenThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tokens{deaf: time.Hour}
		n, err := New(s.config(newMockKafka()))
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.ErrorContains(t, n.Close(), "Config.LoginToken or Config.Healthy has not returned within")
		time.Sleep(time.Hour)
		require.NoError(t, n.Close())
		require.Zero(t, n.Stats().LoginFailures)
	})
}

// If New fails, it leaves no call of LoginToken behind, and does not wait for one that hangs.
func TestNewThatFailsEndsTheCallOfLoginToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, deaf := range []time.Duration{0, time.Minute} {
			s := tokens{deaf: deaf}
			k := newMockKafka()
			k.fail("LogReader", errors.New("no such property: foo"))
			began := time.Now()
			_, err := New(s.config(k))
			require.ErrorContains(t, err, "no such property: foo")
			require.LessOrEqual(t, time.Since(began), time.Second)
			time.Sleep(deaf)
			synctest.Wait()
			require.Equal(t, s.asked.Load(), s.answered.Load(), "it goes on")
		}
	})
}

func TestClosingASentinelsLogEndsTheCallOfLoginToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s tokens
		log, err := (&post{Config: s.config(newMockKafka())}).open(sentinel.Place{Group: "g", Topic: "t", T: time.Second, Rho: 0.001}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		synctest.Wait()
		require.EqualValues(t, 1, s.asked.Load())
		log.Close()
		require.EqualValues(t, 1, s.answered.Load(), "it goes on")
	})
}

// RunSentinel checks its configuration as New does: all faults at once, those of the clients included.
func TestRunSentinelNamesEveryFault(t *testing.T) {
	k := newMockKafka()
	unknown := errors.New(`No such configuration property: "bootstrap.server" s3cret`)
	k.fail("Producer", unknown, unknown)
	var s tokens
	cfg := s.config(k)
	cfg.Sentinel, cfg.Name = "/nowhere/s", "\xff"
	cfg.KafkaConfig = KafkaConfigMap{"bootstrap.server": "typo:1", "sasl.password": "s3cret"}
	err := RunSentinel(t.Context(), cfg, "[")
	for _, says := range []string{"neli: RunSentinel: ", "\nName: ", "\nKafkaConfig[security.protocol]: ", "\nallow: ",
		"\nKafkaConfig: No such configuration property: \"bootstrap.server\" [redacted]"} {
		require.ErrorContains(t, err, says)
	}
	require.NotContains(t, err.Error(), "s3cret")
	cfg.Name, cfg.LoginToken, cfg.KafkaConfig["security.protocol"] = "", nil, "SASL_SSL"
	require.ErrorContains(t, RunSentinel(t.Context(), cfg), "bootstrap.server", "nothing else is wrong")
	require.Zero(t, k.open, "the clients that could be made are closed")
	require.Zero(t, s.asked.Load(), "a token is needed for no check")
}
