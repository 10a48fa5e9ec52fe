package nelitest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// Asking fails where it may not write, and nothing else does.
func TestObserverThatMayNotWriteWatchesOn(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup, b *nelitest.Broker) {
		g.join("a", "b", "c")
		g.until(5*time.Second, allLed)
		b.Refuse("o", nelitest.Appends, kafka.ErrAuthorization)
		o := g.joinWith("o", func(c *neli.Config) { c.Observer = true })
		g.pass(3*smallT, true)
		_, known := o.Holder(0)
		require.True(g, known)
		ctx, stop := context.WithTimeout(g.Context(), 10*time.Second)
		defer stop()
		err := o.Ask(ctx, neli.Request{StepDown: true})
		require.Error(g, err)
		g.pass(3*smallT, true)
		require.Equal(g, neli.StateLive, o.State())
		_, known = o.Holder(0)
		require.True(g, known, "it watches on")
	})
}

// A request is about the term in which it was read, however long the application thinks.
func TestRequestOfAnEarlierTerm(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup, b *nelitest.Broker) {
		called, goOn := make(chan struct{}), make(chan struct{})
		a := g.joinWith("a", func(c *neli.Config) {
			c.Requests = func(neli.Request) error { close(called); <-goOn; return nil }
		})
		g.until(5*time.Second, allLed)
		first, _ := a.Token(0)
		o := g.joinWith("o", func(c *neli.Config) { c.Observer = true })
		g.pass(3*smallT, true)
		out := make(chan error, 1)
		go func() { out <- o.Ask(g.Context(), neli.Request{StepDown: true}) }()
		<-called
		b.CutOff("a", nelitest.All)
		time.Sleep(3 * smallT)
		require.False(g, a.IsLeader())
		b.Restore("a", nelitest.All)
		g.until(10*time.Second, allLed)
		time.Sleep(time.Second)
		second, ok := a.Token(0)
		require.True(g, ok)
		require.Greater(g, second, first)
		close(goOn)
		time.Sleep(2 * time.Second)
		require.True(g, a.IsLeader(), "the request was about an earlier term")
		require.ErrorIs(g, <-out, neli.ErrNotDone)
	})
}
