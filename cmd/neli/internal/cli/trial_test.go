package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
)

// An error about a broker names the setting to look at.
func TestUnreachableBrokers(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("no such host")}
	for _, c := range []struct {
		probe kafka.BrokerProbe
		says  string
	}{
		{kafka.BrokerProbe{Err: fmt.Errorf("unable to dial: %w", dial), Failed: 3, Tried: 3}, "cannot be reached at kafka-7:9092, which it advertises: unable to dial: dial: no such host; look at the broker's advertised.listeners"},
		{kafka.BrokerProbe{Err: context.DeadlineExceeded, Failed: 3, Tried: 3}, "cannot be reached at kafka-7:9092"},
		{kafka.BrokerProbe{Err: errors.New("EOF"), Failed: 1, Tried: 3}, "served only 2 of the 3 connections that a member opens: look at the broker's max.connections"},
		{kafka.BrokerProbe{Err: errors.New("EOF"), Failed: 3, Tried: 3}, "does not serve this client: EOF"},
	} {
		c.probe.ID, c.probe.Address = 7, "kafka-7:9092"
		require.Contains(t, unreachable(c.probe, neli.Config{}), c.says)
	}
}
