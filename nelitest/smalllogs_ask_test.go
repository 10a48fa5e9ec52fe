package nelitest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/inside"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// An observer without the right to write cannot ask, but can do everything else.
func TestObserverThatMayNotWriteWatchesOn(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.Broker.Refuse("o", nelitest.LinkAppends, kafka.ErrAuthorization)
		o := g.joinWith("o", func(c *neli.Config) { c.Observer = true })
		g.staysLed(3 * smallT)
		_, known := o.Holder(0)
		require.True(g, known)
		ctx, stop := context.WithTimeout(g.Context(), 10*time.Second)
		defer stop()
		asked := time.Now()
		err := o.Ask(ctx, neli.Request{StepDown: true})
		require.ErrorIs(g, err, neli.ErrNoAnswer)
		require.ErrorContains(g, err, "cannot WRITE topic "+onePerBroker)
		require.InDelta(g, 3, time.Since(asked).Seconds(), 0.1, "no answer is waited for")
		asked = time.Now()
		require.ErrorIs(g, inside.CallMembers(ctx, o.Neli), neli.ErrNoAnswer)
		require.InDelta(g, 3, time.Since(asked).Seconds(), 0.1)
		g.staysLed(3 * smallT)
		require.Equal(g, neli.StateLive, o.State())
		_, known = o.Holder(0)
		require.True(g, known, "it watches on")
	})
}

// A member that may not write to any log fails at the start, and its error names the right that it lacks.
// A member that loses the right later leads nothing until it has the right again.
func TestMemberThatMayNotWrite(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup) {
		g.Broker.Refuse("a", nelitest.LinkAppends, kafka.ErrAuthorization)
		a := g.joinWith("a", func(*neli.Config) {})
		err := a.Await()
		require.ErrorIs(g, err, neli.ErrAccess)
		require.ErrorContains(g, err, "cannot WRITE topic "+onePerBroker)
		g.Broker.Refuse("b", nelitest.LinkAppends, nil)
		m := g.joinWith("b", func(*neli.Config) {})
		g.until(5*time.Second, func([]string) bool { return m.IsLeader() })
		g.Broker.Refuse("b", nelitest.LinkAppends, kafka.ErrAuthorization)
		g.until(2*smallT, func([]string) bool { return !m.IsLeader() })
		g.Pass(10 * smallT)
		require.Equal(g, neli.StateLive, m.State())
		g.Broker.Refuse("b", nelitest.LinkAppends, nil)
		g.until(5*time.Second, func([]string) bool { return m.IsLeader() })
	})
}

// A request applies to the term in which it was read, however long the application takes to decide.
func TestRequestOfAnEarlierTerm(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup) {
		called, goOn := make(chan struct{}), make(chan struct{})
		a := g.joinWith("a", func(c *neli.Config) {
			c.Requests = func(neli.Request) error { close(called); <-goOn; return nil }
		})
		g.until(5*time.Second, allLed)
		first, _ := a.Token(0)
		o := g.joinWith("o", func(c *neli.Config) { c.Observer = true })
		g.staysLed(3 * smallT)
		out := make(chan error, 1)
		go func() { out <- o.Ask(g.Context(), neli.Request{StepDown: true}) }()
		<-called
		g.Broker.CutOff("a", nelitest.LinkAll)
		time.Sleep(3 * smallT)
		require.False(g, a.IsLeader())
		g.Broker.Restore("a", nelitest.LinkAll)
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
