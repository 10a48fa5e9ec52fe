package main

import (
	"io"
	"log"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// leader returns a leader with a batch that is not committed yet.
func leader(t *testing.T, broker *nelitest.Broker) (*neli.Neli, *importer) {
	i := &importer{log: log.New(io.Discard, "", 0)}
	n, err := neli.New(neli.Config{LeaderGroupID: "importer", Provider: broker.Provider("anna")}, i.barrier)
	require.NoError(t, err)
	i.leads = n.IsLeader
	leads, err := n.Pulse(time.Minute)
	require.NoError(t, err)
	require.True(t, leads)
	i.batch = make([]string, 50)
	return n, i
}

func TestCloseCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := nelitest.NewBroker(nelitest.Options{})
		defer broker.Close()
		n, i := leader(t, broker)
		require.NoError(t, n.Close())
		require.Empty(t, i.batch)
	})
}

// A process that is suspended while it commits, and wakes after the lease, commits nothing.
func TestLateCommitCommitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := nelitest.NewBroker(nelitest.Options{})
		defer broker.Close()
		n, i := leader(t, broker)
		defer n.Close()
		broker.CutOff("anna", nelitest.LinkAll)
		time.Sleep(5 * time.Second)
		require.Error(t, i.commit(t.Context()), "it commits though its lease is over")
		require.Len(t, i.batch, 50)
	})
}
