package redact

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lazy is a value that is computed when it is logged.
type lazy struct{ text string }

func (l lazy) LogValue() slog.Value { return slog.GroupValue(slog.String("of", l.text)) }

func TestLogShowsNoSecret(t *testing.T) {
	var out bytes.Buffer
	log := Secrets{"s3cret"}.Logger(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
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

func TestLoggerWithoutSecretsIsUnchanged(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	require.Same(t, log, Of(map[string]string{"sasl.username": "alice"}).Logger(log))
}

func TestErrorShowsNoSecretAndKeepsItsCause(t *testing.T) {
	s := Secrets{"s3cret"}
	refused := errors.New("access refused")
	cause := errors.New("password s3cret")
	err := s.Err(fmt.Errorf("%w: %w", refused, cause))
	require.EqualError(t, err, "access refused: password [redacted]")
	require.ErrorIs(t, err, refused)
	require.ErrorIs(t, err, cause)
	require.Same(t, refused, s.Err(refused))
	require.NoError(t, s.Err(nil))
}
