package peers

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// crossing is a network connection that can be cut, in one direction or both, and slowed down.
type crossing struct {
	listen net.Listener
	to     string

	mu    sync.Mutex
	lost  [2]bool // by direction: to the host, from the host
	delay time.Duration
	conns map[net.Conn]bool
	work  sync.WaitGroup
}

const (
	toHost = iota
	fromHost
)

// newCrossing forwards connections from an address of its own to another one.
func newCrossing(t *testing.T, to string) *crossing {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &crossing{listen: l, to: to, conns: map[net.Conn]bool{}}
	c.work.Go(c.accept)
	t.Cleanup(c.close)
	return c
}

func (c *crossing) address() string { return c.listen.Addr().String() }

func (c *crossing) close() {
	c.listen.Close()
	c.mu.Lock()
	for conn := range c.conns {
		conn.Close()
	}
	c.mu.Unlock()
	c.work.Wait()
}

// lose silently drops all bytes in these directions, on old and new connections.
func (c *crossing) lose(up, down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = [2]bool{up, down}
}

// slow delays everything.
func (c *crossing) slow(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay = d
}

// reset closes all connections. New ones are accepted.
func (c *crossing) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		conn.Close()
	}
}

func (c *crossing) accept() {
	for {
		near, err := c.listen.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.to)
		if err != nil {
			near.Close()
			continue
		}
		c.mu.Lock()
		c.conns[near], c.conns[far] = true, true
		c.mu.Unlock()
		c.work.Go(func() { c.carry(near, far, toHost) })
		c.work.Go(func() { c.carry(far, near, fromHost) })
	}
}

func (c *crossing) carry(from, to net.Conn, direction int) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		c.mu.Lock()
		lost, delay := c.lost[direction], c.delay
		c.mu.Unlock()
		if lost {
			_, _ = io.Copy(io.Discard, from) // a stream with a hole is of no use
			return
		}
		if delay > 0 {
			<-time.After(delay)
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
