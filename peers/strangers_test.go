package peers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/goneli/neli/peers/internal/wire"
)

// A host without TLS listens beyond loopback only if Insecure is set.
func TestListenBeyondLoopbackNeedsTLS(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:7401", ":7401", "10.0.0.1:7401", "[::]:7401", "a.example:7401"} {
		err := Config{Hosts: three(), Self: "a", Listen: listen}.check()
		assert.ErrorContains(t, err, "is not a loopback address: set TLS, or Insecure", listen)
		assert.NoError(t, Config{Hosts: three(), Self: "a", Listen: listen, Insecure: true}.check(), listen)
	}
	for _, listen := range []string{"127.0.0.1:7409", "[::1]:7409", "localhost:7409"} {
		assert.NoError(t, Config{Hosts: three(), Self: "a", Listen: listen}.check(), listen)
	}
}

// A client opens the call Check and sends nothing. The host ends the call.
func TestCheckWithoutAMessageEnds(t *testing.T) {
	t.Parallel()
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
	startHosts(t, c)
	conn, err := grpc.NewClient(c.Hosts[0].Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), helloWithin+within)
	defer cancel()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, wire.SmallLog_Check_FullMethodName)
	require.NoError(t, err)
	err = s.RecvMsg(&wire.Agreement{})
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "the host keeps the call: %v", err)
}

// A client sends headers of eight megabytes. The host does not accept them.
func TestHugeHeadersAreRefused(t *testing.T) {
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
	startHosts(t, c)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.Hosts[0].Address+wire.SmallLog_Check_FullMethodName, strings.NewReader("\x00\x00\x00\x00\x00"))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("TE", "trailers")
	req.Header.Set("X-Huge", strings.Repeat("x", 8<<20))
	res, err := transport.RoundTrip(req)
	if err == nil {
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		t.Log(res.Status, res.Header, res.Trailer)
	}
	require.Error(t, err)
	t.Log(err)
}

// A process that is refused tries again every few seconds. The host logs the refusal once a minute.
func TestARefusalIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, logger := newJournal()
		s := &settings{agreed: agreement{group: "test", timeout: testTimeout, hosts: three()}}
		h := newHost(three()[0], s.agreed, &top{}, logger)
		other := s.agreed.message("a")
		other.Group = "prod"
		lines := func(member string) int {
			require.Error(t, h.agrees(other, member))
			return strings.Count(journal.String(), "refused: its configuration differs")
		}
		lines("alice")
		require.Equal(t, 1, lines("alice"), "the same refusal is logged again")
		require.Equal(t, 2, lines("bob"), "another one is not")
		for i := range 2 * maxLines {
			lines(fmt.Sprint("stranger ", i))
		}
		require.Equal(t, maxLines, lines("bob"), "strangers fill the log")
		time.Sleep(repeatEvery)
		require.Equal(t, maxLines+1, lines("bob"), "it is not logged again after a minute")
	})
}
