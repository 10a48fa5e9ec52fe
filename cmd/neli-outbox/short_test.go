//go:build unix

package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/goneli/neli"
	"github.com/goneli/neli/fence"
)

func TestShortTerms(t *testing.T) {
	var s shortTerms
	require.Equal(t, 1, s.ended(0, false, true))
	require.Equal(t, 2, s.ended(0, false, true))
	require.Equal(t, 1, s.ended(1, false, true), "another slot")
	require.Equal(t, 2, s.ended(0, false, false), "it was given up")
	require.Equal(t, 0, s.ended(0, true, true))
	require.Equal(t, 1, s.ended(0, false, true))
}

// A relay whose terms never last long enough logs a warning.
func TestRelayWarnsOfTermsThatAreTooShort(t *testing.T) {
	var said bytes.Buffer
	r := &relay{publisher: neverReady{}, log: slog.New(slog.NewTextHandler(&said, nil)), metrics: newMeters(prometheus.NewRegistry())}
	for term := range 4 {
		require.Equal(t, max(0, term-manyShort+1), strings.Count(said.String(), "--timeout is too short"), said.String())
		ctx, lose := context.WithCancelCause(t.Context())
		lose(neli.ErrFenced)
		require.ErrorIs(t, r.lead(ctx, neli.Leadership{Role: 3, Token: int64(term)}), neli.ErrFenced)
	}
	require.EqualValues(t, 4, testutil.ToFloat64(r.metrics.uselessTerms))
	ctx, revoke := context.WithCancelCause(t.Context())
	revoke(neli.ErrRevoked)
	require.ErrorIs(t, r.lead(ctx, neli.Leadership{Role: 3, Token: 5}), neli.ErrRevoked)
	require.EqualValues(t, 4, testutil.ToFloat64(r.metrics.uselessTerms), "it was given up")
}

// neverReady is a publisher whose terms end before they can begin to work.
type neverReady struct{ publisher }

func (neverReady) term(ctx context.Context, _ term, _ func(context.Context, writer, note) error) error {
	return context.Cause(ctx)
}

// A relay that sets a row aside when its term is over, as after a suspension, learns that a later term has claimed.
// That ends its term, not the process.
func TestLateRefusalEndsTheTerm(t *testing.T) {
	ctx, lose := context.WithCancelCause(t.Context())
	log := slog.New(slog.DiscardHandler)
	r := &relay{publisher: late{lose: lose}, log: log, metrics: newMeters(prometheus.NewRegistry())}
	require.ErrorIs(t, r.lead(ctx, neli.Leadership{}), neli.ErrFenced)
}

// late is a publisher whose term ends before it can set the refused row aside.
type late struct{ lose context.CancelCauseFunc }

func (late) term(context.Context, term, func(context.Context, writer, note) error) error {
	return &refusal{rows: []row{{ref: ref{id: 1}}}, why: kerr.MessageTooLarge}
}

func (l late) setAside(context.Context, term, ref, string) error {
	l.lose(neli.ErrFenced)
	return fence.ErrStale
}
