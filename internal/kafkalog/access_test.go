package kafkalog

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/kafka"
	"github.com/stretchr/testify/require"
)

func TestAccessRefusedFromTheBeginning(t *testing.T) {
	for _, refusal := range []error{kafka.ErrAuthentication, kafka.ErrAuthorization} {
		var g AccessGuard
		err := g.Check("WRITE topic t", fmt.Errorf("%w: the broker's own words", refusal))
		require.ErrorIs(t, err, ErrAccess)
		require.ErrorIs(t, err, refusal)
		require.ErrorContains(t, err, "cannot WRITE topic t")
		require.ErrorContains(t, err, "the broker's own words")
	}
}

func TestAccessOtherErrors(t *testing.T) {
	var g AccessGuard
	for _, err := range []error{nil, errors.New("broker down"), kafka.ErrUnknownTopic, kafka.ErrOutOfRange, kafka.ErrClientFatal} {
		require.NoError(t, g.Check("READ topic t", err))
	}
	require.Error(t, g.Check("READ topic t", kafka.ErrAuthorization), "nothing has ever succeeded")
}

func TestAccessRefusedOnceItHasWorked(t *testing.T) {
	var g AccessGuard
	g.OK()
	require.NoError(t, g.Check("READ topic t", kafka.ErrAuthentication))
	require.NoError(t, g.Check("READ topic t", kafka.ErrAuthorization))
}

// Credentials that have worked for one client are not wrong. But a right that one client has used
// need not be another one's.
func TestAccessOfAnotherClient(t *testing.T) {
	var first AccessGuard
	g := AccessGuard{SignedIn: &first}
	require.ErrorIs(t, g.Check("READ group g", kafka.ErrAuthentication), ErrAccess)
	first.OK()
	require.NoError(t, g.Check("READ group g", kafka.ErrAuthentication))
	require.ErrorIs(t, g.Check("READ group g", kafka.ErrAuthorization), ErrAccess)
}

// Trouble is logged at most every ten seconds. Its end is logged once, if the trouble was logged at all.
func TestTroubleIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out said.Text
		log := slog.New(slog.NewTextHandler(&out, nil))
		var tr Trouble
		tr.Over(log, "over")
		require.Empty(t, out.String())
		require.True(t, tr.Due())
		time.Sleep(9 * time.Second)
		require.False(t, tr.Due())
		tr.Over(log, "over", "topic", "t")
		require.Contains(t, out.String(), "msg=over topic=t after=9s\n")
		require.False(t, tr.Due(), "too soon for a line")
		tr.Over(log, "over")
		require.Equal(t, 1, out.Count("msg=over"), "nobody was told of trouble since")
	})
}

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Limiter
		require.True(t, l.Due(), "the first line")
		require.False(t, l.Due())
		time.Sleep(10 * time.Second)
		require.False(t, l.Due())
		time.Sleep(time.Nanosecond)
		require.True(t, l.Due())
		require.False(t, l.Due())
	})
}
