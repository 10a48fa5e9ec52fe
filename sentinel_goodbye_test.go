//go:build linux

package neli_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// After the goodbye a sentinel releases nothing for this process. So the goodbye must come last, and a
// crash during Close is released like any other.
func TestCloseSaysGoodbyeLast(t *testing.T) {
	dir, err := os.MkdirTemp("", "neli-") // short, because the path of a socket is limited
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o750)) //nolint:gosec // a directory
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	socket := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket, Net: "unixpacket"})
	require.NoError(t, err)
	defer l.Close()

	b := nelitest.NewBroker(nelitest.Options{Seed: 1})
	defer b.Close()
	n, err := neli.New(neli.Config{LeaderGroupID: "g", HeartbeatTimeout: 200 * time.Millisecond, Sentinel: socket, Provider: b.Provider("a")})
	require.NoError(t, err)
	c, err := l.AcceptUnix()
	require.NoError(t, err)
	defer c.Close()
	text := make([]byte, 4096)
	_, err = c.Read(text) // the registration
	require.NoError(t, err)
	_, err = c.Write([]byte(`{"state":"asked"}`))
	require.NoError(t, err)
	_, err = c.Read(text) // the confirmation
	require.NoError(t, err)
	_, err = c.Write([]byte(`{"state":"watching"}`))
	require.NoError(t, err)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	p, err := n.Background(func() { <-tick.C })
	require.NoError(t, err)
	require.Eventually(t, n.IsLeader, 30*time.Second, time.Millisecond)

	released := make(chan bool, 1)
	go func() {
		size, _ := c.Read(text)
		assert.JSONEq(t, `{"goodbye":true}`, string(text[:size]))
		given := false
		for _, r := range b.Records("g.neli", 0) {
			record, ok := neli.DecodeWire(r.Value, "g")
			given = given || ok && len(record.Ended) > 0
		}
		released <- given
		_, _ = c.Write([]byte(`{"state":"gone"}`))
	}()
	b.Delay("a", 100*time.Millisecond) // so that the Release is in flight for this long
	p.Close()
	require.NoError(t, p.Await())
	require.NoError(t, n.Close())
	require.True(t, <-released, "it has given back what it led before it says goodbye")
}
