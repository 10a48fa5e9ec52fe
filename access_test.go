package neli

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goneli/neli/kafka"
	"github.com/stretchr/testify/require"
)

func TestAccessRefusedFromTheBeginning(t *testing.T) {
	for _, refusal := range []error{kafka.ErrAuthentication, kafka.ErrAuthorization} {
		var g accessGuard
		err := g.check("WRITE topic t", fmt.Errorf("%w: the broker's own words", refusal))
		require.ErrorIs(t, err, ErrAccess)
		require.ErrorIs(t, err, refusal)
		require.ErrorContains(t, err, "cannot WRITE topic t")
		require.ErrorContains(t, err, "the broker's own words")
	}
}

func TestAccessOtherErrors(t *testing.T) {
	var g accessGuard
	for _, err := range []error{nil, errors.New("broker down"), kafka.ErrUnknownTopic, kafka.ErrOutOfRange, kafka.ErrClientFatal} {
		require.NoError(t, g.check("READ topic t", err))
	}
	require.Error(t, g.check("READ topic t", kafka.ErrAuthorization), "nothing has ever succeeded")
}

func TestAccessRefusedOnceItHasWorked(t *testing.T) {
	var g accessGuard
	g.ok()
	require.NoError(t, g.check("READ topic t", kafka.ErrAuthentication))
	require.NoError(t, g.check("READ topic t", kafka.ErrAuthorization))
}

// Credentials that one client was let in with are not wrong; a right that one
// client used is not another's.
func TestAccessOfAnotherClient(t *testing.T) {
	var first accessGuard
	g := accessGuard{signedIn: &first}
	require.ErrorIs(t, g.check("READ group g", kafka.ErrAuthentication), ErrAccess)
	first.ok()
	require.NoError(t, g.check("READ group g", kafka.ErrAuthentication))
	require.ErrorIs(t, g.check("READ group g", kafka.ErrAuthorization), ErrAccess)
}

// A certificate that has run out, or a broker that has lost its users, ends nobody
// who has worked, however long that lasts. It is said, and not too often.
func TestRefusedForLongAfterItHasWorked(t *testing.T) {
	for _, refusal := range []error{kafka.ErrAuthentication, kafka.ErrAuthorization, kafka.ErrTopicAuthorization, kafka.ErrGroupAuthorization} {
		var out logBuffer
		cfg := Config{Nomination: Assigned, Logger: slog.New(slog.NewTextHandler(&out, nil))}
		mocked(t, cfg, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
			ok, err := n.Pulse(time.Minute)
			require.NoError(t, err)
			require.True(t, ok)
			const minutes = 10
			until := time.Now().Add(minutes * time.Minute)
			k.refuse(refusal, until)
			p, err := n.Background(func() { time.Sleep(time.Second) })
			require.NoError(t, err)
			defer p.Close()
			time.Sleep(time.Until(until))
			require.Equal(t, StateLive, n.State())
			require.False(t, n.IsLeader())
			lines := strings.Count(out.String(), "level=WARN")
			require.Greater(t, lines, minutes)
			require.Less(t, lines, minutes*60)
			require.True(t, strings.Contains(out.String(), "cannot WRITE topic g.neli"))
			require.True(t, strings.Contains(out.String(), "cannot READ topic g.neli"))
			require.Eventually(t, n.IsLeader, time.Minute, 100*time.Millisecond)
		})
	}
}

// One broker of several refuses credentials that the others take: that ends no
// healthy member, whether it has just started or not.
func TestRefusedByOneBrokerOfSeveral(t *testing.T) {
	for _, call := range []string{"Poll", "Group.Poll"} {
		mocked(t, Config{Nomination: Assigned}, func(k *mockKafka) {
			k.fail(call, slices.Repeat([]error{kafka.ErrAuthentication}, 3000)...) // at the start
		}, func(t *testing.T, k *mockKafka, n *Neli) {
			p, err := n.Background(func() { time.Sleep(time.Second) })
			require.NoError(t, err)
			defer p.Close()
			require.Eventually(t, n.IsLeader, 2*time.Minute, 100*time.Millisecond, call)
			for range 60 { // and later, over and over, between polls that bring nothing
				k.mu.Lock()
				k.fail(call, kafka.ErrAuthentication)
				k.mu.Unlock()
				time.Sleep(time.Second)
			}
			require.True(t, n.IsLeader(), call)
		})
	}
}
