package peers

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/peers/internal/wire"
)

func TestMemberThatDisagreesIsRefusedWithBothValues(t *testing.T) {
	c := Config{Hosts: Hosts(t, 3), HeartbeatTimeout: testTimeout}
	hosts := startHosts(t, c)
	right := kafka.LogSettings{Group: "test", Name: "tester", HeartbeatTimeout: testTimeout, MaxClockDrift: defaultDrift}
	for _, other := range []struct {
		name   string
		change func(*Config, *kafka.LogSettings)
		says   []string
	}{
		{"T", func(_ *Config, s *kafka.LogSettings) { s.HeartbeatTimeout = time.Second }, []string{"HeartbeatTimeout: 2s here, 1s there"}},
		{"ρ", func(_ *Config, s *kafka.LogSettings) { s.MaxClockDrift = 0.01 }, []string{"MaxClockDrift: 0.0005 here, 0.01 there"}},
		{"group", func(_ *Config, s *kafka.LogSettings) { s.Group = "prod" }, []string{`group: "test" here, "prod" there`}},
		{"a shorter list", func(c *Config, _ *kafka.LogSettings) { c.Hosts = c.Hosts[:1] },
			[]string{"list of log hosts: 3, [a=", "] here, 1, [a=", "] there"}},
		{"another address", func(c *Config, _ *kafka.LogSettings) {
			c.Hosts = []Host{c.Hosts[0], c.Hosts[1], {ID: "c", Address: "127.0.0.1:9"}}
		}, []string{"list of log hosts: 3, [a=", "c=127.0.0.1:9] there"}},
		{"everything", func(c *Config, s *kafka.LogSettings) {
			s.HeartbeatTimeout, s.MaxClockDrift, s.Group, c.Hosts = time.Minute, 0.2, "x", c.Hosts[:1]
		},
			[]string{"HeartbeatTimeout: 2s here, 1m0s there", "MaxClockDrift: 0.0005 here, 0.2 there", `group: "test" here, "x" there`, "list of log hosts"}},
	} {
		t.Run(other.name, func(t *testing.T) {
			c, s := c, right
			other.change(&c, &s)
			m, err := tryJoin(t, c, s)
			require.NoError(t, err)
			err = m.final(t)
			require.ErrorIs(t, err, ErrRefused)
			for _, says := range other.says {
				assert.ErrorContains(t, err, says)
			}
			assert.Regexp(t, `log host [abc] \(127\.0\.0\.1:\d+\) refuses: another configuration: `, err.Error())
			hosts["a"].journal.await(t, "refused: its configuration differs from that of this log host")
		})
	}
	ok, err := tryJoin(t, c, right)
	require.NoError(t, err)
	ok.begun(t)
}

func TestTheListMayBeInAnyOrder(t *testing.T) {
	c := Config{Hosts: Hosts(t, 3), HeartbeatTimeout: testTimeout}
	startHosts(t, c)
	c.Hosts = []Host{c.Hosts[2], c.Hosts[0], c.Hosts[1]}
	m := join(t, c)
	m.begun(t)
	m.mustAppend(t, 0, "to a")
	c.Hosts = []Host{c.Hosts[1], c.Hosts[0], c.Hosts[2]}
	other := join(t, c)
	other.await(t, "it is in the same log", func(logs []view) bool { return len(logs[0].records) == 1 })
}

func TestRefusalByAMinorityEndsNoMember(t *testing.T) {
	c := Config{Hosts: Hosts(t, 3), HeartbeatTimeout: testTimeout}
	for _, id := range []string{"a", "b"} {
		own := c
		own.Self = id
		startHost(t, own)
	}
	wrong := c
	wrong.Self, wrong.HeartbeatTimeout = "c", time.Second
	host := startHost(t, wrong)
	host.journal.await(t, "another log host disagrees")
	m := join(t, c)
	m.journal.await(t, "log host refuses this process")
	m.await(t, "two logs are read", func(logs []view) bool { return logs[0].resets == 1 && logs[1].resets == 1 })
	m.mustAppend(t, 0, "x")
	m.mustAppend(t, 1, "x")
	_, err := m.append(2, "x")
	require.ErrorIs(t, err, errDown)
}

func TestLaterRefusalsDoNotEndAMember(t *testing.T) {
	t.Parallel()
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
	hosts := startHosts(t, c)
	m := join(t, c)
	m.begun(t)
	hosts["a"].kill(t)
	other := c
	other.Self, other.HeartbeatTimeout = "a", time.Second
	host := startHost(t, other)
	m.journal.await(t, "log host refuses this process")
	host.kill(t)
	startHosts(t, c)
	m.await(t, "the right one is back", func(logs []view) bool { return logs[0].resets == 2 })
}

func TestAHostIsNotTakenForAnother(t *testing.T) {
	c := Config{Hosts: Hosts(t, 3), HeartbeatTimeout: testTimeout}
	own := c
	own.Self, own.Listen = "a", c.Hosts[1].Address // where b should be
	startHost(t, own)
	m := join(t, c)
	m.journal.await(t, `log host: \"a\" here, \"b\" wanted`)
}

func TestOneAddressHasOneLog(t *testing.T) {
	c := Config{Hosts: Hosts(t, 3), HeartbeatTimeout: testTimeout, Self: "a"}
	join(t, c)
	_, err := tryJoin(t, c, kafka.LogSettings{Group: "test", HeartbeatTimeout: testTimeout, MaxClockDrift: defaultDrift})
	require.ErrorContains(t, err, "log host a cannot listen")
	require.ErrorContains(t, err, c.Hosts[0].Address)
	err = ListenAndServe(t.Context(), Config{Hosts: c.Hosts, Self: "a", Group: "test"})
	require.ErrorContains(t, err, "one address has one log host")
}

func TestANewerVersionIsRefused(t *testing.T) {
	_, logger := newJournal()
	s := &settings{agreed: agreement{group: "test", timeout: testTimeout, hosts: []Host{{"a", "127.0.0.1:1"}}}}
	s.self = s.agreed.hosts[0]
	h := newHost(s.self, s.agreed, &top{}, logger)
	newer := s.agreed.message("a")
	newer.Version = 2
	newer.TimeoutNanos = 1 // may have another meaning
	err := h.agrees(newer, "newer")
	assert.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "protocol version: 1 here, 2 there")
	require.NotContains(t, err.Error(), "HeartbeatTimeout")
}

func TestRubbishOnThePortIsRefused(t *testing.T) {
	for _, secure := range []bool{false, true} {
		c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
		if secure {
			c.TLS = newAuthority(t).issue(t, "127.0.0.1")
		}
		startHosts(t, c)
		m := join(t, c)
		m.begun(t)
		noise := make([]byte, 100_000)
		rand.Read(noise)
		for _, bytes := range [][]byte{nil, noise, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), []byte("\x16\x03\x01\xff\xff"),
			[]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff")} {
			conn, err := net.Dial("tcp", c.Hosts[0].Address)
			require.NoError(t, err)
			_, _ = conn.Write(bytes) // the connection may be refused meanwhile
			conn.Close()
		}
		m.mustAppend(t, 0, "still there")
		assert.Equal(t, 1, m.view(0).resets)
	}
}

// stranger is a connection that says nothing. A host that serves it sends a greeting, and closes it after a while.
type stranger struct {
	net.Conn
	greeted, closed bool
}

// read reads until then, or until the host closes the connection.
func (s *stranger) read(until time.Time) {
	_ = s.SetReadDeadline(until)
	n, err := io.Copy(io.Discard, s.Conn)
	s.greeted = s.greeted || n > 0
	s.closed = !errors.Is(err, os.ErrDeadlineExceeded)
}

// TestConnectionsAreLimited lets strangers use all connections that a host accepts. When one of
// them is closed, one more is served.
func TestConnectionsAreLimited(t *testing.T) {
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
	startHosts(t, c)
	strangers := make([]*stranger, maxConnections+1)
	for i := range strangers {
		conn, err := net.Dial("tcp", c.Hosts[0].Address)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		strangers[i] = &stranger{Conn: conn}
	}
	until := time.Now().Add(time.Second)
	var reading sync.WaitGroup
	for _, s := range strangers {
		reading.Go(func() { s.read(until) })
	}
	reading.Wait()
	served := 0
	for _, s := range strangers {
		if s.greeted && !s.closed { // a slow machine may have closed some already
			served++
		}
	}
	require.Positive(t, served)
	require.LessOrEqual(t, served, maxConnections)

	strangers[0].Close()
	late := strangers[maxConnections]
	for end := time.Now().Add(within); !late.greeted && time.Now().Before(end); {
		late.read(time.Now().Add(50 * time.Millisecond))
	}
	require.True(t, late.greeted, "no other one is served when one is closed")
}

// TestHugeMessageIsRefused announces such a message, as gRPC does, and sends some of it.
func TestHugeMessageIsRefused(t *testing.T) {
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
	startHosts(t, c)
	m := join(t, c)
	m.begun(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	body := io.MultiReader(bytes.NewReader([]byte{0, 0x40, 0, 0, 0}), bytes.NewReader(make([]byte, 1000)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.Hosts[0].Address+wire.SmallLog_Follow_FullMethodName, body)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("TE", "trailers")
	res, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // the status comes after the body
	assert.Equal(t, "8", res.Trailer.Get("Grpc-Status")+res.Header.Get("Grpc-Status"), "RESOURCE_EXHAUSTED")
	assert.Contains(t, res.Trailer.Get("Grpc-Message")+res.Header.Get("Grpc-Message"), "larger than max")
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
	m.mustAppend(t, 0, "still there")
}

func TestForeignCertificateIsRefused(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	c := Config{Hosts: Hosts(t, 3), HeartbeatTimeout: testTimeout, TLS: ours.issue(t, "127.0.0.1")}
	c.TLS.Members = []string{"invoicing"}
	hosts := startHosts(t, c)

	t.Run("a member of another name", func(t *testing.T) {
		c := c
		c.TLS = ours.issue(t, "shipping", "10.0.0.1")
		m, err := tryJoin(t, c, kafka.LogSettings{Group: "test", HeartbeatTimeout: testTimeout, MaxClockDrift: defaultDrift})
		require.NoError(t, err)
		err = m.final(t)
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, "the certificate is for [shipping 10.0.0.1], which is neither a host of the list nor in TLS.Members")
		hosts["a"].journal.await(t, "refused: may not connect")
	})
	t.Run("a member that may", func(t *testing.T) {
		c := c
		c.TLS = ours.issue(t, "invoicing")
		m := join(t, c)
		m.begun(t)
		m.mustAppend(t, 0, "x")
	})
	t.Run("of another authority", func(t *testing.T) {
		c := c
		c.TLS = theirs.issue(t, "127.0.0.1")
		m := join(t, c)
		m.journal.await(t, "unknown authority")
		_, err := m.append(0, "x")
		require.ErrorIs(t, err, errDown)
	})
	t.Run("a client of another authority", func(t *testing.T) {
		c := c
		c.TLS = theirs.issue(t, "127.0.0.1")
		c.TLS.CAFile = ours.issue(t).CAFile // the client trusts the hosts, but they do not trust it
		m := join(t, c)
		m.journal.await(t, "unknown certificate authority")
	})
	t.Run("none", func(t *testing.T) {
		c := c
		c.TLS = nil
		m := join(t, c)
		m.journal.await(t, "log host cannot be reached")
		_, err := m.append(0, "x")
		require.ErrorIs(t, err, errDown)
		conn, err := tls.Dial("tcp", c.Hosts[0].Address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
		require.ErrorContains(t, err, "certificate required")
	})
	t.Run("a host's", func(t *testing.T) {
		hosts["b"].kill(t)
		listen, err := net.Listen("tcp", c.Hosts[1].Address)
		require.NoError(t, err)
		impostor, err := newKeys(*ours.issue(t, "elsewhere.example"))
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				conn, err := listen.Accept()
				if err != nil {
					return
				}
				_ = tls.Server(conn, impostor.server()).Handshake()
				conn.Close()
			}
		}()
		defer func() { listen.Close(); <-done }()
		m := join(t, c)
		m.journal.await(t, "cannot validate certificate for 127.0.0.1")
	})
}

func TestCertificatesAreReadAgain(t *testing.T) {
	ours := newAuthority(t)
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout, TLS: ours.issue(t, "127.0.0.1")}
	hosts := startHosts(t, c)
	member := c
	member.TLS = ours.issue(t, "shipping")
	keys, err := newKeys(*member.TLS)
	require.NoError(t, err)
	s := &settings{config: member, keys: keys, agreed: agreement{group: "test", timeout: testTimeout, drift: defaultDrift, hosts: c.Hosts}}
	for range 3 {
		require.ErrorContains(t, askOnce(t, s, c.Hosts[0]), "neither a host of the list")
	}
	require.Equal(t, 1, strings.Count(hosts["a"].journal.String(), "refused: may not connect"), "each refusal is logged")

	ours.renew(t, member.TLS, "127.0.0.1", "a name that makes it longer")
	require.NoError(t, askOnce(t, s, c.Hosts[0]), "needs a restart to use the new certificate")
	require.NoError(t, keys.trouble())

	write(t, member.TLS.CertFile, "CERTIFICATE", []byte("half a file"))
	require.NoError(t, askOnce(t, s, c.Hosts[0]), "a file that cannot be read has replaced the certificate")
	require.ErrorContains(t, keys.trouble(), "cert.pem")
}

func TestCertificatesThatCannotBeReadAgainAreReported(t *testing.T) {
	ours := newAuthority(t)
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout, TLS: ours.issue(t, "127.0.0.1")}
	startHosts(t, c)
	c.TLS = ours.issue(t, "127.0.0.1")
	journal, logger := newJournal()
	s, err := c.settle(agreement{group: "test", timeout: testTimeout, drift: defaultDrift}, "", logger)
	require.NoError(t, err)
	write(t, c.TLS.CertFile, "CERTIFICATE", []byte("half a file"))
	for range 3 {
		require.NoError(t, askOnce(t, s, c.Hosts[0]))
	}
	const line = "certificate files cannot be used: the previous certificates stay in use"
	require.Equal(t, 1, strings.Count(journal.String(), line), "%s", journal)
	require.Contains(t, journal.String(), "cert.pem")
}

func TestAHostThatDoesNotResolve(t *testing.T) {
	c := Config{Hosts: Hosts(t, 3), HeartbeatTimeout: testTimeout, Insecure: true}
	c.Hosts[2].Address = "nowhere.invalid:7400"
	c.dns = fakeDNS{err: errors.New("lookup nowhere.invalid: no such host")}
	for _, id := range []string{"a", "b"} {
		own := c
		own.Self = id
		startHost(t, own)
	}
	m := join(t, c)
	m.journal.await(t, "no such host")
	assert.Contains(t, m.journal.String(), "host=c address=nowhere.invalid:7400")
	m.await(t, "the others are read", func(logs []view) bool { return logs[0].resets == 1 && logs[1].resets == 1 })
	m.mustAppend(t, 0, "x")
}

func askOnce(t *testing.T, s *settings, h Host) error {
	t.Helper()
	_, err := s.ask(t.Context(), h, s.agreed.message(h.ID))
	return err
}

func TestAddressMayHaveAZone(t *testing.T) {
	dial := func(_ context.Context, _, address string) (net.Conn, error) {
		return nil, errors.New("dialled " + address)
	}
	s := &settings{config: Config{Dial: dial}}
	_, err := s.ask(t.Context(), Host{"a", "[fe80::1%eth0]:7400"}, &wire.Agreement{})
	require.ErrorContains(t, err, "dialled [fe80::1%eth0]:7400")
}
