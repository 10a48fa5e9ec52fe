package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// -shards 0 is the default of Config.Roles: one shard.
func TestTheDefaultNumberOfShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := nelitest.NewBroker(nelitest.Options{})
		defer broker.Close()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		require.NoError(t, run(ctx, neli.Config{LeaderGroupID: "shards", Provider: broker.Provider("anna")}))
	})
}
