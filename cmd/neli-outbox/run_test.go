package main

import (
	"context"
	"net"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// A relay that is interrupted while it waits for the database or for Kafka has not failed.
func TestInterruptedWaitIsNoFailure(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			defer conn.Close()
			cancel()
		}
	}()
	host, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	var c config
	c.register(pflag.NewFlagSet("", pflag.ContinueOnError))
	c.database = "host=" + host + " port=" + port + " sslmode=disable"
	require.NoError(t, run(ctx, &c))
}
