// Package trial tests programs that act from time to time while they lead.
package trial

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// Program runs until ctx is done, and calls act while it leads, at least once a minute.
type Program func(ctx context.Context, config neli.Config, act func()) error

// Of makes a Program of a function that gets a Neli.
func Of(run func(ctx context.Context, n *neli.Neli, act func()) error) Program {
	return func(ctx context.Context, config neli.Config, act func()) error {
		n, err := neli.New(config)
		if err != nil {
			return err
		}
		return errors.Join(run(ctx, n, act), n.Close())
	}
}

// while is longer than a lease, and long enough for several calls of act.
const while = 5 * time.Minute

type member struct {
	name  string
	acts  atomic.Int64
	stop  context.CancelFunc
	ended chan error
}

// Run runs the program in two processes, with a Kafka in memory and in simulated time. It requires that one
// of them acts while it leads; that after a suspension longer than its lease it does nothing; and that the
// other one takes over when it ends.
func Run(t *testing.T, config neli.Config, program Program) {
	synctest.Test(t, func(t *testing.T) {
		broker := nelitest.NewBroker(nelitest.Options{})
		defer broker.Close()
		start := func(name string) *member {
			c := config
			c.Provider, c.Name = broker.Provider(name), name
			ctx, stop := context.WithCancel(t.Context())
			m := &member{name: name, stop: stop, ended: make(chan error, 1)}
			go func() { m.ended <- program(ctx, c, func() { m.acts.Add(1) }) }()
			return m
		}
		anna := start("anna")
		time.Sleep(while)
		require.Positive(t, anna.acts.Load(), "it leads")
		boris := start("boris")
		time.Sleep(while)

		leader, next := onlyOneActs(t, anna, boris)
		broker.Freeze(leader.name)
		before, nexts := leader.acts.Load(), next.acts.Load()
		time.Sleep(while)
		require.Equal(t, before, leader.acts.Load(), "it stops when it has lost its lease")
		require.Greater(t, next.acts.Load(), nexts, "the other one takes over")
		broker.Resume(leader.name)
		time.Sleep(while)

		leader, next = onlyOneActs(t, anna, boris)
		leader.stop()
		require.NoError(t, <-leader.ended)
		before, nexts = leader.acts.Load(), next.acts.Load()
		time.Sleep(while)
		require.Equal(t, before, leader.acts.Load(), "it has ended")
		require.Greater(t, next.acts.Load(), nexts, "it hands over")
		next.stop()
		require.NoError(t, <-next.ended)
	})
}

// onlyOneActs requires that exactly one of two members acts, and returns both.
func onlyOneActs(t *testing.T, a, b *member) (leader, next *member) {
	t.Helper()
	as, bs := a.acts.Load(), b.acts.Load()
	time.Sleep(while)
	as, bs = a.acts.Load()-as, b.acts.Load()-bs
	require.Positive(t, as+bs, "somebody leads")
	require.Zero(t, min(as, bs), "only one leads")
	if as > 0 {
		return a, b
	}
	return b, a
}
