package neli

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lazy is a value that is made when it is logged.
type lazy struct{ text string }

func (l lazy) LogValue() slog.Value { return slog.GroupValue(slog.String("of", l.text)) }

func TestLogShowsNoSecret(t *testing.T) {
	var out bytes.Buffer
	log := secrets{"s3cret"}.logger(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	log.With("early", "s3cret", slog.Group("in", "deep", errors.New("s3cret!"))).WithGroup("client").Debug("the s3cret is out",
		"error", fmt.Errorf("refused: %w", errors.New("s3cret")), "bytes", []byte("a s3cret"), "list", []string{"x", "s3cret"},
		"fields", struct{ Password string }{"s3cret"}, "lazy", lazy{"s3cret"}, "wait", time.Second, "n", 3, "none", error(nil),
		slog.Group("group", "of", "s3crets3cret"))
	line := out.String()
	require.NotContains(t, line, "s3cret")
	for _, want := range []string{
		`"msg":"the [redacted] is out"`, `"early":"[redacted]"`, `"in":{"deep":"[redacted]!"}`, `"client":{"error":"refused: [redacted]"`,
		`"bytes":"a [redacted]"`, `"list":"[x [redacted]]"`, `"fields":"{Password:[redacted]}"`, `"lazy":{"of":"[redacted]"}`,
		`"wait":1000000000`, `"n":3`, `"none":null`, `"group":{"of":"[redacted]"}`,
	} {
		require.Contains(t, line, want)
	}
}

func TestLogOfNoSecretsIsTheSame(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	require.Same(t, log, secretsOf(map[string]string{"sasl.username": "alice"}).logger(log))
}

func TestErrorShowsNoSecretAndKeepsItsCause(t *testing.T) {
	s := secrets{"s3cret"}
	cause := fmt.Errorf("%w: password s3cret", ErrAuthentication)
	err := s.err(fmt.Errorf("%w: %w", ErrAccess, cause))
	require.EqualError(t, err, "neli: access refused: authentication refused: password [redacted]")
	require.ErrorIs(t, err, ErrAccess)
	require.ErrorIs(t, err, cause)
	require.Same(t, ErrAccess, s.err(ErrAccess))
	require.NoError(t, s.err(nil))
}

// A Kafka client that shows secrets shows them to the library only.
func TestClientsNeedNotHideSecrets(t *testing.T) {
	var out logBuffer
	cfg := Config{
		Nomination: Assigned, KafkaConfig: KafkaConfigMap{"sasl.password": "s3cret"},
		Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	mocked(t, cfg, func(k *mockKafka) {
		k.fail("Poll", errors.New("no broker takes s3cret"), fmt.Errorf("%w: s3cret", ErrTopicAuthorization))
	}, func(t *testing.T, k *mockKafka, n *Neli) {
		require.Eventually(t, func() bool { return n.State() == StateFailed }, time.Minute, 100*time.Millisecond)
		err := n.Await()
		require.ErrorIs(t, err, ErrAccess)
		require.ErrorContains(t, err, redacted)
		require.NotContains(t, err.Error(), "s3cret")
		require.Contains(t, out.String(), "no broker takes "+redacted)
		require.NotContains(t, out.String(), "s3cret")
	})
}
