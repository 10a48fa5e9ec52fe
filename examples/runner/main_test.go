package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// Others could not be redirected to an address without a host.
func TestAnAddressWithoutAHostIsRefused(t *testing.T) {
	broker := nelitest.NewBroker(nelitest.Options{})
	defer broker.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	for _, listen := range []string{":0", "0.0.0.0:0", "[::]:0"} {
		err := run(ctx, neli.Config{LeaderGroupID: "runner", Provider: broker.Provider("anna")}, listen)
		require.ErrorContains(t, err, "-listen "+listen+": must name a host")
	}
}
