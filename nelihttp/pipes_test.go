package nelihttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// simulate runs a test in a bubble. No goroutine may be left at its end.
func simulate(t *testing.T, test func(*testing.T, *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newPipes()) })
}

// pipes is a network in memory, so that servers and clients live in simulated time. Nothing is
// buffered: a client that does not read blocks the writer at once.
type pipes struct {
	incoming chan net.Conn
	closing  chan struct{}
	once     sync.Once
}

func newPipes() *pipes {
	return &pipes{incoming: make(chan net.Conn), closing: make(chan struct{})}
}

var errNoServer = errors.New("no server")

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.incoming:
		return c, nil
	case <-p.closing:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closing) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.incoming <- there:
		return here, nil
	case <-p.closing:
		return nil, errNoServer
	}
}

// serve runs a server until the end of the test, and returns a client of it.
func (p *pipes) serve(t *testing.T, s *http.Server) *http.Client {
	t.Helper()
	var work sync.WaitGroup
	work.Go(func() { _ = s.Serve(p) })
	transport := &http.Transport{DialContext: p.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, s.Close())
		work.Wait()
		synctest.Wait()
	})
	return &http.Client{Transport: transport}
}
