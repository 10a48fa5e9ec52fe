package nelitest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// Reach over a link that is cut waits until its context or what it waits for ends.
func TestReachEndsWithItsClientOrLink(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*nelitest.Broker, kafka.GroupConsumer)
		want error
	}{
		"the broker is closed": {func(b *nelitest.Broker, _ kafka.GroupConsumer) { b.Close() }, kafka.ErrClientFatal},
		"the member dies":      {func(b *nelitest.Broker, _ kafka.GroupConsumer) { b.Kill("a") }, kafka.ErrClientFatal},
		"the link is restored": {func(b *nelitest.Broker, _ kafka.GroupConsumer) { b.Restore("a", nelitest.LinkGroup) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := nelitest.NewBroker(nelitest.Options{})
				g := newMember(t, b.Provider("a"))
				b.CutOff("a", nelitest.LinkGroup)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				answer := make(chan error, 1)
				go func() { answer <- g.Reach(ctx, "topic") }()
				synctest.Wait()
				require.Empty(t, answer)
				c.end(b, g)
				require.ErrorIs(t, <-answer, c.want)
				require.NoError(t, ctx.Err())
			})
		})
	}
}

// Errors wrap the context's error, also where the context has a cause of its own.
func TestCallsEndWithTheErrorOfTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		p := b.Provider("a")
		g := newMember(t, p)
		a := newAdmin(t, p, newProducer(t, p, nil))
		b.CutOff("a", nelitest.LinkAll)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("a cause"))
		require.ErrorIs(t, g.Reach(ctx, "topic"), context.Canceled)
		_, err := a.Brokers(ctx, false)
		require.ErrorIs(t, err, context.Canceled)
	})
}
