package providertest

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// A point of the contract that ends while the brokers are frozen must thaw them. Closing its clients would
// otherwise wait until the time limit of the whole run.
func TestBrokersAreThawedWhenAPointEndsEarly(t *testing.T) {
	frozen := false
	t.Run("reaches", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := nelitest.NewBroker(nelitest.Options{})
			reaches(t, Bed{
				Provider: endsPoint{b.Provider("a"), t, &frozen},
				CreateTopic: func(t *testing.T, topic string, partitions int) {
					require.NoError(t, b.CreateTopic(topic, partitions))
				},
				Freeze: func(*testing.T) func() {
					b.CutOff("a", nelitest.LinkAll)
					frozen = true
					return func() {
						b.Restore("a", nelitest.LinkAll)
						frozen = false
					}
				},
			})
		})
	})
	require.False(t, frozen)
}

// endsPoint is a provider with which a point ends where it asks frozen brokers. It ends as a point that fails
// does, by runtime.Goexit, but does not make this test fail.
type endsPoint struct {
	kafka.Provider
	t      *testing.T
	frozen *bool
}

func (p endsPoint) GroupConsumer(props map[string]string, log *slog.Logger) (kafka.GroupConsumer, error) {
	g, err := p.Provider.GroupConsumer(props, log)
	return endsPointConsumer{g, p}, err
}

type endsPointConsumer struct {
	kafka.GroupConsumer
	endsPoint
}

func (c endsPointConsumer) Reach(ctx context.Context, topic string) error {
	if *c.frozen {
		c.t.Skip("stands for a failure")
	}
	return c.GroupConsumer.Reach(ctx, topic)
}
