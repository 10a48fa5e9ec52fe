package web

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// soon is how long anything may take on a busy machine.
const soon = 40 * time.Second

// served starts a server that answers every request with an empty body, and returns its address.
func served(t *testing.T, most limits) string {
	t.Helper()
	return servedBy(t, func(http.ResponseWriter, *http.Request) {}, most)
}

// servedBy starts a server, and returns its address.
func servedBy(t *testing.T, handler http.HandlerFunc, most limits) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	stop := serve(l, handler, most, slog.New(slog.DiscardHandler))
	t.Cleanup(stop)
	return l.Addr().String()
}

// connection is a client's connection, which stays open.
type connection struct {
	net.Conn
	t       *testing.T
	answers *bufio.Reader
}

func connect(t *testing.T, address string) *connection {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, soon)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &connection{Conn: c, t: t, answers: bufio.NewReader(c)}
}

func (c *connection) ask() {
	c.t.Helper()
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: neli\r\n\r\n")
	require.NoError(c.t, err)
}

// answer waits for the answer to a request, or returns why there is none.
func (c *connection) answer(within time.Duration) error {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(within)))
	r, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return err
	}
	require.Equal(c.t, http.StatusOK, r.StatusCode)
	return r.Body.Close()
}

// ends waits until the server closes the connection.
func (c *connection) ends() {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(soon)))
	_, err := c.answers.ReadByte()
	require.ErrorIs(c.t, err, io.EOF, "the server closes the connection")
}

func TestIdleConnectionIsClosed(t *testing.T) {
	most := usual
	most.request, most.idle = time.Hour, 50*time.Millisecond
	c := connect(t, served(t, most))
	c.ask()
	require.NoError(t, c.answer(soon))
	c.ends()
}

func TestSilentConnectionIsClosed(t *testing.T) {
	most := usual
	most.request, most.idle = 50*time.Millisecond, time.Hour
	connect(t, served(t, most)).ends()
}

// A client that announces a body and never sends it cannot keep its connection.
//
// The limit is also that of the headers, which a busy machine may send late.
func TestConnectionWithoutItsBodyIsClosed(t *testing.T) {
	most := usual
	most.request, most.idle = 5*time.Second, time.Hour
	c := connect(t, served(t, most))
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: neli\r\nContent-Length: 5\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, c.answer(soon))
	c.ends()
}

// A client that does not read a long answer cannot keep its connection either.
func TestConnectionThatDoesNotReadIsClosed(t *testing.T) {
	most := usual
	most.request, most.answer, most.idle = time.Hour, 50*time.Millisecond, time.Hour
	ended := make(chan error, 1)
	c := connect(t, servedBy(t, func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(make([]byte, 64<<20)) // more than the kernel buffers
		ended <- err
	}, most))
	c.ask()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	case <-time.After(soon):
		t.Fatal("the server waits for a client that does not read")
	}
}

// A client beyond the limit waits, and is answered once another connection has closed.
func TestConnectionsAreLimited(t *testing.T) {
	most := usual
	most.request, most.idle = time.Hour, time.Hour
	address := served(t, most)
	var first *connection
	for range 300 {
		c := connect(t, address)
		c.ask()
		require.NoError(t, c.answer(soon), "a client within the limit is answered")
		if first == nil {
			first = c
		}
	}
	above := connect(t, address)
	above.ask()
	require.ErrorIs(t, above.answer(200*time.Millisecond), os.ErrDeadlineExceeded, "a client above the limit waits")
	require.NoError(t, first.Close())
	require.NoError(t, above.answer(soon), "it is answered when another one has gone")
}

// The limits of neli run --listen.
func TestUsualLimits(t *testing.T) {
	require.Equal(t, limits{request: 5 * time.Second, answer: 30 * time.Second, idle: 30 * time.Second, connections: 300}, usual)
}
