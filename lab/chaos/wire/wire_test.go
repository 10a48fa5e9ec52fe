package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	port = 7000
	// patience is how long an answer may take on a busy machine.
	patience = time.Minute
)

func newNet(t *testing.T, names ...string) *Net {
	t.Helper()
	n, err := New(1, names...)
	require.NoError(t, err, "these tests need root and /dev/net/tun")
	t.Cleanup(n.Close)
	return n
}

// echo answers datagrams on a host until the test ends.
func echo(t *testing.T, h *Host) string {
	t.Helper()
	addr := fmt.Sprintf("%s:%d", h.IP, port)
	c, err := h.ListenPacket("udp", addr)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(buf[:n], from)
		}
	}()
	t.Cleanup(func() { _ = c.Close(); <-done })
	return addr
}

func dial(t *testing.T, h *Host, addr string) net.Conn {
	t.Helper()
	c, err := h.Dial(t.Context(), "udp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ping sends one datagram and returns how long the answer took, or false.
func ping(t *testing.T, c net.Conn, patience time.Duration) (time.Duration, bool) {
	t.Helper()
	began := time.Now()
	_, err := fmt.Fprintf(c, "%d", began.UnixNano())
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(began.Add(patience)))
	buf := make([]byte, 64)
	for {
		n, err := c.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, false
		}
		require.NoError(t, err)
		if string(buf[:n]) == fmt.Sprint(began.UnixNano()) { // otherwise it is a late answer to an earlier ping
			return time.Since(began), true
		}
	}
}

func TestDelay(t *testing.T) {
	const delay = time.Second
	n := newNet(t, "a", "b")
	c := dial(t, n.Host("a"), echo(t, n.Host("b")))
	_, ok := ping(t, c, patience)
	require.True(t, ok)
	n.Set("a", "b", Policy{Delay: delay, Jitter: delay / 10})
	took, ok := ping(t, c, patience)
	require.True(t, ok)
	assert.GreaterOrEqual(t, took, delay)
	n.Set("b", "a", Policy{Delay: delay})
	took, ok = ping(t, c, patience)
	require.True(t, ok)
	assert.GreaterOrEqual(t, took, 2*delay)
	n.Set("a", "b", Policy{Delay: time.Hour})
	n.Set("a", "b", Policy{})
	_, ok = ping(t, c, patience)
	require.True(t, ok, "the hour counts no more")
}

func TestLoss(t *testing.T) {
	n := newNet(t, "a", "b")
	c := dial(t, n.Host("a"), echo(t, n.Host("b")))
	n.Set("a", "b", Policy{Loss: 0.3})
	for range 1000 {
		_, err := c.Write([]byte("x"))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		got := n.Count("a", "b")
		return got.Carried+got.Lost == 1000
	}, patience, 5*time.Millisecond)
	assert.InDelta(t, 300, float64(n.Count("a", "b").Lost), 60)
}

func TestCutOneWay(t *testing.T) {
	n := newNet(t, "a", "b", "c")
	addr := echo(t, n.Host("b"))
	a, c := dial(t, n.Host("a"), addr), dial(t, n.Host("c"), addr)
	n.Set("b", "a", Policy{Cut: true})
	_, ok := ping(t, a, 200*time.Millisecond)
	assert.False(t, ok)
	require.Eventually(t, func() bool { return n.Count("a", "b").Carried == 1 }, patience, time.Millisecond, "the question arrives")
	require.Eventually(t, func() bool { return n.Count("b", "a").Cut == 1 }, patience, time.Millisecond, "the answer does not")
	_, ok = ping(t, c, patience)
	assert.True(t, ok, "other links are not affected")
	n.Set("b", "a", Policy{})
	_, ok = ping(t, a, patience)
	assert.True(t, ok)
}

// Packets of a slow link arrive in the order in which they were sent, even if the link becomes fast meanwhile.
func TestTCPSurvivesDelayLossAndChange(t *testing.T) {
	n := newNet(t, "a", "b")
	l, err := n.Host("b").Listen("tcp", fmt.Sprintf("%s:%d", n.Host("b").IP, port))
	require.NoError(t, err)
	defer l.Close()
	n.Set("a", "b", Policy{Delay: 20 * time.Millisecond, Jitter: 30 * time.Millisecond, Loss: 0.02})
	sent := strings.Repeat("in order, all of it; ", 20_000)
	failed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c, err := n.Host("a").Dial(ctx, "tcp", l.Addr().String())
		if err != nil {
			failed <- err
			return
		}
		_, err = io.WriteString(c, sent)
		failed <- errors.Join(err, c.Close())
	}()
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()
	var got strings.Builder
	_, err = io.CopyN(&got, c, int64(len(sent)/2))
	require.NoError(t, err)
	n.Set("a", "b", Policy{})
	_, err = io.Copy(&got, c)
	require.NoError(t, err)
	require.NoError(t, <-failed)
	assert.Equal(t, sent, got.String())
}

func TestQueueIsBounded(t *testing.T) {
	n := newNet(t, "a", "b")
	c := dial(t, n.Host("a"), echo(t, n.Host("b")))
	n.Set("a", "b", Policy{Delay: time.Minute})
	for range queueLimit + 200 {
		_, err := c.Write([]byte("x"))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return n.Count("a", "b").Overflowed == 200 }, patience, 5*time.Millisecond)
}

// A host's processes see its address and none of the machine's. They end with the host, even if they are suspended.
func TestProcesses(t *testing.T) {
	n := newNet(t, "a", "b")
	var out strings.Builder
	cmd := exec.Command("cat", "/proc/net/fib_trie") // lists the addresses of the process's namespace
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, n.Host("a").Start(cmd))
	require.NoError(t, cmd.Wait())
	assert.Contains(t, out.String(), n.Host("a").IP.String())
	own, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, addr := range own {
		if ip := addr.(*net.IPNet).IP; !ip.IsLoopback() {
			assert.NotContains(t, out.String(), ip.String())
		}
	}

	sleep := exec.Command("sleep", "300")
	require.NoError(t, n.Host("a").Start(sleep))
	n.Close()
	assert.ErrorContains(t, sleep.Wait(), "killed")
	assert.ErrorIs(t, n.Host("a").Start(exec.Command("true")), errClosed)
}
