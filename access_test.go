package neli

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAccessRefusedFromTheBeginning(t *testing.T) {
	for _, refusal := range []error{ErrAuthentication, ErrAuthorization} {
		var g accessGuard
		err := g.check("WRITE topic t", fmt.Errorf("%w: the broker's own words", refusal))
		require.ErrorIs(t, err, ErrAccess)
		require.ErrorIs(t, err, refusal)
		require.ErrorContains(t, err, "cannot WRITE topic t")
		require.ErrorContains(t, err, "the broker's own words")
	}
}

func TestAccessOtherErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g accessGuard
		for range 10 {
			for _, err := range []error{nil, errors.New("broker down"), ErrUnknownTopic, ErrOutOfRange, ErrClientFatal} {
				require.NoError(t, g.check("READ topic t", err))
			}
			time.Sleep(refusedFor)
		}
		require.Error(t, g.check("READ topic t", ErrAuthorization), "nothing has ever succeeded")
	})
}

// A broker that has just started may not have read its users yet.
func TestAccessRefusedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g accessGuard
		g.ok()
		require.NoError(t, g.check("READ topic t", ErrAuthentication))
		for range 9 {
			time.Sleep(refusedFor / 10)
			require.NoError(t, g.check("READ topic t", ErrAuthentication))
		}
		time.Sleep(refusedFor/10 - 1)
		require.NoError(t, g.check("READ topic t", ErrAuthorization))
		time.Sleep(1 * time.Nanosecond)
		err := g.check("READ topic t", ErrAuthorization)
		require.ErrorIs(t, err, ErrAccess)
		require.ErrorIs(t, err, ErrAuthorization)
	})
}

// Refusals that are far apart, with nothing at all in between, are not one
// refusal that lasts.
func TestAccessRefusalsFarApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g accessGuard
		g.ok()
		for range 10 {
			require.NoError(t, g.check("READ group g", ErrAuthorization))
			time.Sleep(refusedFor + 1)
		}
		require.NoError(t, g.check("READ group g", ErrAuthorization))
		time.Sleep(refusedFor)
		require.ErrorIs(t, g.check("READ group g", ErrAuthorization), ErrAccess, "near enough to be one")
		time.Sleep(time.Hour)
		require.NoError(t, g.check("READ group g", ErrAuthorization), "a new story")
	})
}

func TestAccessRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g accessGuard
		g.ok()
		for range 10 {
			require.NoError(t, g.check("READ topic t", ErrAuthentication))
			time.Sleep(refusedFor - 1)
			require.NoError(t, g.check("READ topic t", ErrAuthentication))
			g.ok()
			time.Sleep(time.Hour)
		}
	})
}
