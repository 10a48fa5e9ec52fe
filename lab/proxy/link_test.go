package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/kafkatest"
)

// patience is how long a step that must succeed may take.
const patience = time.Minute

// These tests use toxiproxy without Kafka: a server returns each line, and the tests look at connections to it.

// CutOff drops the bytes that arrive, and Restore closes the connections. Hold delivers the bytes later, even if their
// sender is gone.
func TestCutOffDropsAndHoldDeliversLate(t *testing.T) {
	for _, how := range []Cut{Upstream, Downstream, Both} {
		for _, holds := range []bool{false, true} {
			t.Run(fmt.Sprint(how, ", holds: ", holds), func(t *testing.T) {
				p, heard := echo(t)
				old := dial(t, p)
				old.say("one")
				old.hears("one")
				assert.Equal(t, "one\n", <-heard)

				if holds {
					require.NoError(t, p.Hold(how))
				} else {
					require.NoError(t, p.CutOff(how))
				}
				old.say("two")
				old.hearsNothing()
				fresh := dial(t, p)
				fresh.say("three")
				fresh.hearsNothing()
				if holds {
					require.NoError(t, fresh.Close())
				}
				if !holds && how == Downstream {
					assert.ElementsMatch(t, []string{"two\n", "three\n"}, []string{<-heard, <-heard})
				} else if !holds {
					assert.Empty(t, heard)
				}

				require.NoError(t, p.Restore())
				after := old
				if holds {
					old.hears("two")
				} else {
					old.isClosed()
					fresh.isClosed()
					after = dial(t, p)
				}
				after.say("four")
				after.hears("four")
				if holds {
					assert.ElementsMatch(t, []string{"two\n", "three\n", "four\n"}, []string{<-heard, <-heard, <-heard})
				} else {
					assert.Equal(t, "four\n", <-heard)
				}
				assert.Empty(t, heard)
			})
		}
	}
}

func TestRefuse(t *testing.T) {
	p, _ := echo(t)
	old := dial(t, p)
	old.say("one")
	old.hears("one")
	for range 2 {
		require.NoError(t, p.CutOff(Refuse))
		old.isClosed()
		_, err := net.Dial("tcp", p.Bootstrap())
		require.Error(t, err)
	}
	require.NoError(t, p.Restore())
	again := dial(t, p)
	again.say("two")
	again.hears("two")
}

// As after a fork, another socket has the address for a moment.
func TestRestoreWaitsForTheAddress(t *testing.T) {
	p, _ := echo(t)
	require.NoError(t, p.CutOff(Refuse))
	copied, err := net.Listen("tcp", p.Bootstrap())
	require.NoError(t, err)
	time.AfterFunc(100*time.Millisecond, func() { _ = copied.Close() })
	require.NoError(t, p.Restore())
	again := dial(t, p)
	again.say("one")
	again.hears("one")
}

func TestLatency(t *testing.T) {
	p, _ := echo(t)
	conn := dial(t, p)
	trip := func() time.Duration {
		began := time.Now()
		conn.say("one")
		conn.hears("one")
		return time.Since(began)
	}
	// With the former latency of an hour no answer comes in time, however busy the machine is.
	require.NoError(t, p.Latency(time.Hour))
	require.NoError(t, p.Latency(200*time.Millisecond), "in place of the former")
	assert.GreaterOrEqual(t, trip(), 200*time.Millisecond)
	require.NoError(t, p.Latency(time.Hour))
	require.NoError(t, p.Restore())
	trip() // on the same connection
}

func TestStatesReplaceEachOther(t *testing.T) {
	p, heard := echo(t)
	changes := []func() error{
		func() error { return p.CutOff(Both) },
		func() error { return p.Hold(Both) },
		func() error { return p.CutOff(Refuse) },
		func() error { return p.Latency(time.Millisecond) },
		func() error { return p.Hold(Upstream) },
		func() error { return p.CutOff(Downstream) },
		func() error { return p.Restore() },
	}
	for _, change := range changes {
		require.NoError(t, change())
		require.NoError(t, change())
	}
	conn := dial(t, p)
	conn.say("one")
	conn.hears("one")
	assert.Equal(t, "one\n", <-heard)
}

func TestProxyRefusesWrongUse(t *testing.T) {
	p, _ := echo(t)
	assert.ErrorContains(t, p.CutOff(Cut(9)), "cannot cut off Cut(9)")
	assert.ErrorContains(t, p.Hold(Refuse), "cannot hold refuse")
	assert.ErrorContains(t, p.CutOff(Both, 7), "there is no broker 7")
	p.Close()
	p.Close()
	assert.ErrorContains(t, p.Restore(), "the proxy is closed")
}

func TestNoGoroutineStays(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("busy", func(t *testing.T) {
		p, _ := echo(t)
		for _, cut := range []func(Cut, ...int) error{p.CutOff, p.Hold} {
			for range 5 {
				conn := dial(t, p)
				conn.say("one")
				conn.hears("one")
				require.NoError(t, cut(Both))
				conn.say("two")
				conn.hearsNothing()
				require.NoError(t, p.Restore())
			}
		}
	})
	noMoreThan(t, before)
}

// noMoreThan waits until there are no more goroutines than before.
func noMoreThan(t *testing.T, before int) {
	t.Helper()
	// The condition runs on a goroutine of its own.
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 },
		patience, 20*time.Millisecond)
}

// echo starts an echo server behind a proxy. The channel gets what the server receives.
func echo(t *testing.T) (*Proxy, <-chan string) {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	heard := make(chan string, 100)
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewReader(conn); ; {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					heard <- line
					if _, err := io.WriteString(conn, line); err != nil {
						return
					}
				}
			}()
		}
	}()

	// An ephemeral port might become the local end of a connection of another process while the proxy refuses.
	own, err := kafkatest.FreeAddrs(1)
	require.NoError(t, err)
	l, err := newLink(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
		kafkatest.Route{BrokerID: 1, Advertised: own[0], Upstream: server.Addr().String()})
	require.NoError(t, err)
	l.Advertised = l.proxy.Listen
	p := &Proxy{links: []*link{l}}
	t.Cleanup(p.Close)
	return p, heard
}

type conn struct {
	net.Conn
	t     *testing.T
	lines *bufio.Reader
}

func dial(t *testing.T, p *Proxy) conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Bootstrap())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return conn{c, t, bufio.NewReader(c)}
}

func (c conn) say(line string) {
	c.t.Helper()
	_, err := io.WriteString(c, line+"\n")
	require.NoError(c.t, err)
}

func (c conn) hears(line string) {
	c.t.Helper()
	got, err := c.read(patience)
	require.NoError(c.t, err)
	require.Equal(c.t, line+"\n", got)
}

func (c conn) hearsNothing() {
	c.t.Helper()
	got, err := c.read(100 * time.Millisecond)
	require.ErrorIs(c.t, err, os.ErrDeadlineExceeded, got)
}

func (c conn) isClosed() {
	c.t.Helper()
	got, err := c.read(patience)
	require.Error(c.t, err, got)
	require.False(c.t, errors.Is(err, os.ErrDeadlineExceeded), "still open")
}

func (c conn) read(limit time.Duration) (string, error) {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(limit)))
	return c.lines.ReadString('\n')
}
