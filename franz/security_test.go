package franz_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/kafka"
)

const password = "s3same-0pen/+="

// pair is a self-signed certificate for this machine, with its key.
type pair struct {
	certificate, key string
	loaded           tls.Certificate
}

func newPair(t *testing.T, names ...string) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if names == nil {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	p := pair{
		certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}
	p.loaded, err = tls.X509KeyPair([]byte(p.certificate), []byte(p.key))
	require.NoError(t, err)
	return p
}

// outcome returns how each kind of client fares. refused says that an error is expected soon.
func (b *bed) outcome(refused bool) error {
	b.t.Helper()
	b.props["message.timeout.ms"] = "20000"
	if refused {
		b.props["message.timeout.ms"] = "1000"
	}
	p := b.producer()
	_, err := b.admin(p).Brokers(b.t.Context(), true)
	if err != nil {
		r, g := b.reader(), b.member()
		require.NoError(b.t, r.Assign("log", []int64{0}))
		assert.ErrorIs(b.t, pollError(b.t, r, kafka.ErrAuthentication), kafka.ErrAuthentication)
		require.NoError(b.t, g.Join("log", false))
		for end := time.Now().Add(patience); ; {
			if _, err := g.Poll(100 * time.Millisecond); err != nil {
				assert.ErrorIs(b.t, err, kafka.ErrAuthentication)
				break
			}
			require.True(b.t, time.Now().Before(end), "a member gets no error")
		}
		o := newOutcomes()
		require.NoError(b.t, p.Append("log", 0, nil, o.report))
		assert.ErrorIs(b.t, o.next(b.t), kafka.ErrAuthentication)
		return err
	}
	b.append(p, "log", "x")
	return nil
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	server := newPair(t)
	c := cluster(t, kfake.SeedTopics(1, "log"), kfake.EnableSASL(), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{server.loaded}}),
		kfake.Superuser("PLAIN", "alice", password), kfake.Superuser("SCRAM-SHA-256", "alice", password), kfake.Superuser("SCRAM-SHA-512", "alice", password))
	elsewhere := newPair(t)
	for _, tc := range []struct {
		name    string
		props   []string
		refused bool
	}{
		{"SCRAM-SHA-512", nil, false},
		{"SCRAM-SHA-256", []string{"sasl.mechanism", "SCRAM-SHA-256"}, false},
		{"PLAIN, by the other name", []string{"sasl.mechanism", "", "sasl.mechanisms", "PLAIN"}, false},
		{"another CA", []string{"ssl.ca.pem", elsewhere.certificate}, true},
		{"no verification", []string{"ssl.ca.pem", elsewhere.certificate, "enable.ssl.certificate.verification", "false"}, false},
		{"wrong password", []string{"sasl.password", "not-the-passw0rd"}, true}, // the last case: see below
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(t, c, append([]string{"security.protocol", "SASL_SSL", "ssl.ca.pem", server.certificate,
				"sasl.mechanism", "SCRAM-SHA-512", "sasl.username", "alice", "sasl.password", password}, tc.props...)...)
			if tc.name == "wrong password" { // this broker hangs up, where Kafka would say why
				c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.SASLAuthenticate}, Err: kerr.SaslAuthenticationFailed, TopLevel: true, Count: -1})
			}
			err := b.outcome(tc.refused)
			if tc.refused {
				require.ErrorIs(t, err, kafka.ErrAuthentication)
				t.Log(err)
			} else {
				require.NoError(t, err)
			}
			require.NotEmpty(t, b.log.String(), "franz-go logs")
			for _, secret := range []string{password, "not-the-passw0rd"} {
				require.NotContains(t, b.log.String(), secret)
			}
		})
	}
}

// A broker may demand a certificate, and refuse the one it gets. With TLS 1.3 it does so only
// after the connection was made.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	server, mine := newPair(t), newPair(t)
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM([]byte(mine.certificate)))
	c := cluster(t, kfake.SeedTopics(1, "log"), kfake.TLS(&tls.Config{
		Certificates: []tls.Certificate{server.loaded}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted}))
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	base := []string{"security.protocol", "SSL"}
	b := newBed(t, c, append(base, "ssl.ca.pem", server.certificate, "ssl.certificate.pem", mine.certificate, "ssl.key.pem", mine.key)...)
	require.NoError(t, b.outcome(false))
	b = newBed(t, c, append(base, "ssl.ca.location", file("ca.pem", server.certificate),
		"ssl.certificate.location", file("mine.pem", mine.certificate), "ssl.key.location", file("key.pem", mine.key))...)
	require.NoError(t, b.outcome(false))
	stranger := newPair(t)
	b = newBed(t, c, append(base, "ssl.ca.pem", server.certificate, "ssl.certificate.pem", stranger.certificate, "ssl.key.pem", stranger.key)...)
	require.ErrorIs(t, b.outcome(true), kafka.ErrAuthentication)
	for line := range strings.Lines(stranger.key) {
		if !strings.HasPrefix(line, "-----") {
			require.NotContains(t, b.log.String(), strings.TrimSpace(line))
		}
	}
	b = newBed(t, c, append(base, "ssl.ca.pem", server.certificate)...)
	require.ErrorIs(t, b.outcome(true), kafka.ErrAuthentication, "no certificate at all")
}

// When a certificate is replaced in its files, the next connection uses it. While only one of the
// two files is replaced, the old pair is used.
func TestRenewedCertificate(t *testing.T) {
	server, former, next := newPair(t), newPair(t), newPair(t)
	var trusts atomic.Pointer[x509.CertPool]
	trust := func(p pair) {
		pool := x509.NewCertPool()
		require.True(t, pool.AppendCertsFromPEM([]byte(p.certificate)))
		trusts.Store(pool)
	}
	trust(former)
	var shook atomic.Int64
	c := cluster(t, kfake.SeedTopics(1, "log"), kfake.TLS(&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		shook.Add(1)
		return &tls.Config{Certificates: []tls.Certificate{server.loaded}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusts.Load()}, nil
	}}))
	certificate, key := filepath.Join(t.TempDir(), "mine.pem"), filepath.Join(t.TempDir(), "key.pem")
	write := func(path, content string) { require.NoError(t, os.WriteFile(path, []byte(content), 0o600)) }
	write(certificate, former.certificate)
	write(key, former.key)
	b := newBed(t, c, "security.protocol", "SSL", "ssl.ca.pem", server.certificate, "ssl.certificate.location", certificate, "ssl.key.location", key,
		"connections.max.idle.ms", "100", "message.timeout.ms", "5000", "topic.metadata.refresh.interval.ms", "60000")
	p := b.producer()
	again := func() { // over a new connection, after the former ones were closed as idle
		t.Helper()
		before := shook.Load()
		require.Eventually(t, func() bool {
			o := newOutcomes()
			return p.Append("log", 0, []byte("x"), o.report) == nil && <-o.ch == nil && shook.Load() > before
		}, patience, 500*time.Millisecond)
	}
	again()
	write(key, next.key) // the certificate is still the old one
	again()
	write(certificate, next.certificate)
	trust(next)
	again()
}

// Without identification, a certificate must be trusted, but may be for another name.
func TestIdentification(t *testing.T) {
	t.Parallel()
	server := newPair(t, "kafka.example.com")
	c := cluster(t, kfake.SeedTopics(1, "log"), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{server.loaded}}))
	for ca, works := range map[string]map[string]bool{
		server.certificate:     {"https": false, "none": true},
		newPair(t).certificate: {"https": false, "none": false},
	} {
		for algorithm, works := range works {
			b := newBed(t, c, "security.protocol", "SSL", "ssl.ca.pem", ca, "ssl.endpoint.identification.algorithm", algorithm)
			if err := b.outcome(!works); works {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, kafka.ErrAuthentication)
			}
		}
	}
}

// Options set what properties cannot, and take precedence over them.
func TestOptions(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "log"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "alice", password))
	b := newBed(t, c, "security.protocol", "SASL_PLAINTEXT", "bootstrap.servers", "127.0.0.1:1")
	_, err := franz.Provider().Producer(b.props, b.logger())
	require.ErrorContains(t, err, "sasl.mechanism: is needed")
	b.opts = []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.SASL(plain.Auth{User: "alice", Pass: password}.AsMechanism())}
	require.NoError(t, b.outcome(false))
	b.props["sasl.mechanism"], b.props["sasl.username"], b.props["sasl.password"] = "PLAIN", "mallory", "guessed"
	require.NoError(t, b.outcome(false), "the option has precedence")
}

// If a broker hangs up without giving a reason, the library's log says that it did.
func TestHangUpOfABrokerIsLogged(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "log"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "alice", password))
	b := newBed(t, c, "message.timeout.ms", "5000") // the broker must have hung up by then
	r, g, p := b.reader(), b.member(), b.producer()
	require.NoError(t, r.Assign("log", []int64{0}))
	require.NoError(t, g.Join("log", false))
	var of [2]error
	for end := time.Now().Add(patience); (of[0] == nil || of[1] == nil) && time.Now().Before(end); {
		_, _, err := r.Poll(50 * time.Millisecond)
		of[0] = cmp.Or(of[0], err)
		_, err = g.Poll(50 * time.Millisecond)
		of[1] = cmp.Or(of[1], err)
	}
	o := newOutcomes()
	require.NoError(t, p.Append("log", 0, nil, o.report))
	for _, err := range append(of[:], o.next(t)) {
		require.ErrorContains(t, err, "EOF")
		require.NotErrorIs(t, err, kafka.ErrAuthentication)
	}
}

// A broker that refuses a token gives its reason instead of an error code. A token function may
// also report that it will never get a token. In both cases the client must not try for ever.
func TestRefusedToken(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "log"))
	c.ControlKey(int16(kmsg.SASLHandshake), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := kmsg.NewPtrSASLHandshakeResponse()
		resp.SupportedMechanisms = []string{"OAUTHBEARER"}
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.SASLAuthBytes = []byte(`{"status":"invalid_token"}`)
		return resp, nil, true
	})
	for name, get := range map[string]func(context.Context) (oauth.Auth, error){
		"by the broker": func(context.Context) (oauth.Auth, error) { return oauth.Auth{Token: "stale"}, nil },
		"by the token host": func(context.Context) (oauth.Auth, error) {
			return oauth.Auth{}, fmt.Errorf("%w: invalid_client", kafka.ErrAuthentication)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, c)
			b.opts = []kgo.Opt{kgo.SASL(oauth.Oauth(get))}
			require.ErrorIs(t, b.outcome(true), kafka.ErrAuthentication)
		})
	}
}
