package main

import (
	"context"
	"math"
	"net"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// given returns the configuration of these arguments.
func given(t *testing.T, args ...string) (*config, *pflag.FlagSet) {
	var c config
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.register(flags)
	require.NoError(t, flags.Parse(args))
	return &c, flags
}

// An argument that has a password is refused. PGPASSWORD does not matter, even if its text occurs in the argument.
func TestPasswordsInArgumentsAreRefused(t *testing.T) {
	t.Setenv("PGPASSWORD", "shop")
	for database, public := range map[string]bool{
		"postgres://shop@localhost/shop":                                false,
		"postgres://shop:@localhost/shop":                               false,
		"user=shop dbname=shop":                                         false,
		"user=shop password='' dbname=shop":                             false,
		"postgres://shop:sesame@localhost/shop":                         true,
		"postgresql://shop:open%20sesame@localhost/shop":                true,
		"postgres://shop@localhost/shop?sslmode=prefer&password=op%65n": true,
		"user=shop password = sesame dbname=shop":                       true,
		"password='open sesame' user=shop dbname=shop":                  true,
		`user=shop dbname=shop password='it\'s sesame'`:                 true,
		`user=shop dbname=shop password=open\ sesame port=5`:            true,
		"user=shop sslpassword=sesame":                                  true,
		"postgres://shop@localhost/shop?sslpassword=sesame":             true,
	} {
		c, flags := given(t, "--database", database)
		err := c.check(flags)
		if public {
			require.ErrorContains(t, err, "arguments are public", database)
		} else {
			require.NoError(t, err, database)
		}
	}
}

// Without a group, relays of unrelated tables would share a topic and transactional ids. The room for batches is a multiple of
// their size, and would overflow.
func TestAnEmptyGroupAndHugeBatchesAreRefused(t *testing.T) {
	t.Setenv("OUTBOX_GROUP", "")
	c, flags := given(t)
	require.NoError(t, fromEnvironment(flags))
	require.ErrorContains(t, c.check(flags), "--group: must not be empty")
	c.most.bytes = math.MaxInt
	require.ErrorContains(t, c.check(flags), "--batch-bytes: 9223372036854775807 must be")
}

// If the Kafka client refuses an option, the relay ends with an error. It must not act as if Kafka did not answer.
func TestOptionsThatTheClientRefusesAreErrors(t *testing.T) {
	for _, flag := range []string{"--bootstrap=kafka:port", "--max-record-bytes=200000000"} {
		c, _ := given(t, flag)
		_, err := c.kafka()
		require.ErrorContains(t, err, "--bootstrap, --max-record-bytes", flag)
	}
}

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
	c, _ := given(t)
	c.database = "host=" + host + " port=" + port + " sslmode=disable"
	require.NoError(t, run(ctx, c))
}
