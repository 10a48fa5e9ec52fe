package integration

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/nelihttp"
)

// tokenBed is a broker that accepts tokens, and their issuer.
type tokenBed struct {
	cluster *kafkatest.Cluster
	issuer  *issuer
	admin   hostileAdmin
}

// member returns the configuration of a member that logs in as a client of the issuer, with props added. The client has
// rights on the member's topic. The log has all levels.
func (b *tokenBed) member(t *testing.T, name string, props neli.KafkaConfigMap, set func(*neli.Config), rights ...hostileRight) (neli.Config, *hostileLog) {
	t.Helper()
	cfg, log := hostileConfig(b.cluster.TokenBootstrap(), "token", hostileModes[0].set)
	cfg.Provider, cfg.HeartbeatTimeout = clients[name](), 5*time.Second // nobody fails over here
	who := cfg.LeaderGroupID + "-client"
	maps.Copy(cfg.KafkaConfig, neli.KafkaConfigMap{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc",
		"sasl.oauthbearer.client.id": who, "sasl.oauthbearer.client.secret": issuerSecret, "sasl.oauthbearer.token.endpoint.url": b.issuer.URL + "/token",
		"sasl.oauthbearer.scope": "neli"})
	maps.Copy(cfg.KafkaConfig, props)
	if set != nil {
		set(&cfg)
	}
	b.admin.create(t, cfg.LeaderTopic, 1, 1, nil)
	var acls []kafkatest.ACL
	for _, r := range rights {
		acls = append(acls, r.acl(who, cfg))
	}
	if len(acls) > 0 {
		require.NoError(t, b.cluster.Allow(t.Context(), acls...))
	}
	return cfg, log
}

// hook makes cfg take tokens from a function of the test's.
func hook(cfg *neli.Config, token func(context.Context) (kafka.Token, error)) {
	for _, name := range []string{"method", "client.id", "client.secret", "token.endpoint.url", "scope"} {
		delete(cfg.KafkaConfig, "sasl.oauthbearer."+name)
	}
	delete(cfg.KafkaConfig, "sasl.mechanism")
	cfg.LoginToken = token
}

// Both clients log in by tokens, from properties and from a function, on a broker that wants new ones every 20 s. A token is
// replaced before it ends. If it cannot be replaced, a warning is logged, and nothing else happens.
func TestTokens(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	props := steadyBroker()
	maps.Copy(props, plainProperties())
	b := &tokenBed{issuer: i, cluster: kafkatest.Run(t, kafkatest.Options{Secure: true, Issuer: i.URL, BrokerProps: props})}
	b.admin = newHostileAdmin(t, b.cluster.Bootstrap())
	t.Run("", func(t *testing.T) { // they mostly wait, so they run in parallel
		for name := range clients {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				t.Run("renewal", func(t *testing.T) { t.Parallel(); testRenewal(t, b, name) })
				t.Run("assertion", func(t *testing.T) { t.Parallel(); testAssertion(t, b, name) })
				t.Run("function", func(t *testing.T) { t.Parallel(); testTokenFunction(t, b, name) })
				t.Run("issuers", func(t *testing.T) { t.Parallel(); testIssuers(t, b, name) })
				t.Run("refused", func(t *testing.T) { t.Parallel(); testRefusedTokens(t, b, name) })
				t.Run("refused later", func(t *testing.T) { t.Parallel(); testRefusedLater(t, b, name) })
				t.Run("endpoint with TLS", func(t *testing.T) { t.Parallel(); testSecureEndpoint(t, b, name) })
				t.Run("passwords", func(t *testing.T) { t.Parallel(); testPasswords(t, b, name) })
			})
		}
		t.Run("check", func(t *testing.T) { t.Parallel(); testCheckedLogins(t, b) })
	})
}

// testRenewal checks that a member leads throughout while its tokens and its sessions with the broker end, twice.
func testRenewal(t *testing.T, b *tokenBed, name string) {
	cfg, log := b.member(t, name, neli.KafkaConfigMap{"debug": "all", "sasl.oauthbearer.extensions": "traceId=123"}, nil, hostileRights["open"]...)
	cfg.HeartbeatTimeout = longTimeout
	m := hostileStart(t, cfg, log)
	t.Logf("leads after %v", m.leads(t, time.Minute))
	term, _ := m.Token(0)
	who, _ := cfg.KafkaConfig["sasl.oauthbearer.client.id"].(string)
	hostileUntil(t, 3*issuerLife, func() bool { return b.issuer.issued(who) >= 6 }, "the producer and the reader have had three tokens each")
	assert.True(t, m.IsLeader())
	now, _ := m.Token(0)
	assert.Equal(t, term, now, "the same term")
	assert.Zero(t, m.Stats().LoginFailures)
	shows(t, log, m)
}

// shows checks that neither a member's pages nor its log have a secret. It closes the member.
func shows(t *testing.T, log *hostileLog, m *hostileMember, more ...string) {
	t.Helper()
	secrets := append(more, issuerSecret, "eyJ")
	pages := nelihttp.Handler(m.Neli)
	for _, route := range []string{"/", "/leader", "/leader/0", "/holder/0", "/standings", "/members", "/stats", "/healthz"} {
		page := httptest.NewRecorder()
		pages.ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, route, nil))
		for _, secret := range secrets {
			assert.NotContains(t, page.Body.String(), secret, route)
		}
	}
	require.NoError(t, m.Close())
	<-m.ended
	for _, secret := range secrets {
		assert.Empty(t, log.with(secret), "%q was logged", secret)
		assert.NotContains(t, fmt.Sprint(m.err), secret)
	}
}

func testAssertion(t *testing.T, b *tokenBed, name string) {
	key := assertionKey()
	b.issuer.assert.Store(&key.PublicKey)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	cfg, log := b.member(t, name, neli.KafkaConfigMap{"sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
		"sasl.oauthbearer.assertion.private.key.file": file, "sasl.oauthbearer.assertion.claim.aud": b.issuer.URL}, func(c *neli.Config) {
		c.KafkaConfig["sasl.oauthbearer.assertion.claim.sub"] = c.KafkaConfig["sasl.oauthbearer.client.id"]
		delete(c.KafkaConfig, "sasl.oauthbearer.client.id")
		delete(c.KafkaConfig, "sasl.oauthbearer.client.secret")
	}, hostileRights["open"]...)
	m := hostileStart(t, cfg, log)
	m.leads(t, time.Minute)
	shows(t, log, m)
}

var assertionKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// testTokenFunction checks what happens if Config.LoginToken fails when another token is due.
func testTokenFunction(t *testing.T, b *tokenBed, name string) {
	var calls, running atomic.Int64
	var first atomic.Int64 // when the first token ends
	var broken atomic.Bool
	var who string
	cfg, log := b.member(t, name, neli.KafkaConfigMap{"debug": "all"}, func(c *neli.Config) {
		who, _ = c.KafkaConfig["sasl.oauthbearer.client.id"].(string)
		hook(c, func(context.Context) (kafka.Token, error) {
			assert.EqualValues(t, 1, running.Add(1), "one call at a time")
			defer running.Add(-1)
			calls.Add(1)
			if broken.Load() {
				return kafka.Token{}, errors.New("the vault is sealed")
			}
			first.CompareAndSwap(0, time.Now().Add(issuerLife).UnixNano())
			return kafka.Token{Value: b.issuer.issue(who, issuerLife), Expires: time.Now().Add(issuerLife), Principal: who,
				Extensions: map[string]string{"traceId": "123"}}, nil
		})
	}, hostileRights["open"]...)
	cfg.HeartbeatTimeout = longTimeout
	m := hostileStart(t, cfg, log)
	m.leads(t, time.Minute)
	term, _ := m.Token(0)
	// A token is replaced after four fifths of its life, so a slow start may need more than one.
	due := time.Since(time.Unix(0, first.Load()).Add(-issuerLife)) / (issuerLife * 4 / 5)
	require.LessOrEqual(t, calls.Load(), 1+int64(due), "all clients share a token")
	broken.Store(true)
	hostileUntil(t, 2*issuerLife, func() bool {
		return len(log.with("level=WARN", "no token to log in with, retrying", "Config.LoginToken: the vault is sealed")) > 0
	}, "it says that there is no token")
	assert.Positive(t, m.Stats().LoginFailures)
	before := b.issuer.issued(who) // while none is issued
	broken.Store(false)
	hostileUntil(t, time.Minute, func() bool { return b.issuer.issued(who) > before }, "it asks again")
	hostileUntil(t, 2*issuerLife, func() bool { return time.Now().UnixNano() > first.Load() }, "the first token is over")
	assert.True(t, m.IsLeader())
	now, _ := m.Token(0)
	assert.Equal(t, term, now, "the same term")
	shows(t, log, m)
}

// testRefusedTokens checks that a login that is refused from the start ends the member, with one
// error that names a property.
func testRefusedTokens(t *testing.T, b *tokenBed, name string) {
	hooked := func(token func(context.Context) (kafka.Token, error)) func(*neli.Config) {
		return func(c *neli.Config) { hook(c, token) }
	}
	value := b.issuer.issue("somebody", time.Hour)
	for what, tc := range map[string]struct {
		props neli.KafkaConfigMap
		set   func(*neli.Config)
		says  string
	}{
		"wrong secret": {neli.KafkaConfigMap{"sasl.oauthbearer.client.secret": "an0ther-s3cret"}, nil, "look at sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret"},
		"no endpoint":  {neli.KafkaConfigMap{"sasl.oauthbearer.token.endpoint.url": b.issuer.URL + "/nowhere"}, nil, "look at sasl.oauthbearer.token.endpoint.url"},
		"no expiry": {nil, hooked(func(context.Context) (kafka.Token, error) { return kafka.Token{Value: value}, nil }),
			"Config.LoginToken: the token has no expiry"},
		"in the past": {nil, hooked(func(context.Context) (kafka.Token, error) {
			return kafka.Token{Value: value, Expires: time.Now().Add(-time.Hour)}, nil
		}), "Config.LoginToken: the token expired 1h0m"},
		"not by us": {nil, hooked(func(context.Context) (kafka.Token, error) {
			return kafka.Token{Value: "eyJhbGciOiJub25lIn0.eyJzdWIiOiJuZWxpIn0.c2lnbmVk", Expires: time.Now().Add(time.Hour)}, nil
		}), byName(name, "invalid_token", "the broker refuses the token (invalid_token)")},
		"for good": {nil, hooked(func(context.Context) (kafka.Token, error) {
			return kafka.Token{}, fmt.Errorf("%w: no such role", neli.ErrAccess)
		}), "Config.LoginToken: neli: access refused: no such role"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cfg, log := b.member(t, name, tc.props, tc.set, hostileRights["open"]...)
			m := hostileStart(t, cfg, log)
			err := m.fails(t, time.Minute)
			t.Log(err)
			assert.ErrorIs(t, err, neli.ErrAccess)
			assert.ErrorIs(t, err, kafka.ErrAuthentication)
			assert.ErrorContains(t, err, tc.says)
			shows(t, log, m, "an0ther-s3cret")
		})
	}
	t.Run("may read and not write", func(t *testing.T) {
		t.Parallel()
		cfg, log := b.member(t, name, nil, nil, readTopic)
		m := hostileStart(t, cfg, log)
		err := m.fails(t, time.Minute)
		assert.ErrorIs(t, err, neli.ErrAccess)
		assert.ErrorContains(t, err, "WRITE topic "+cfg.LeaderTopic)
		shows(t, log, m)
	})
	t.Run("nobody is there", func(t *testing.T) {
		t.Parallel()
		cfg, log := b.member(t, name, neli.KafkaConfigMap{"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"}, nil, hostileRights["open"]...)
		m := hostileStart(t, cfg, log)
		hostileUntil(t, time.Minute, func() bool {
			return len(log.with("level=WARN", "no token to log in with, retrying", "look at sasl.oauthbearer.token.endpoint.url")) > 0
		}, "it says why")
		assert.Equal(t, neli.StateLive, m.State(), "somebody may be there later")
		assert.Positive(t, m.Stats().LoginFailures)
		shows(t, log, m)
	})
}

func byName(name, confluent, franz string) string {
	if name == "franz" {
		return franz
	}
	return confluent
}

// testIssuers checks what a member reports if an issuer answers something else than a token, from the start.
func testIssuers(t *testing.T, b *tokenBed, name string) {
	const page = "<html>s3cret-page</html>"
	for what, tc := range map[string]struct {
		answer func(*issuer)
		says   string
		ends   bool
	}{
		"HTML":      {func(i *issuer) { i.instead(200, "text/html", page) }, "look at sasl.oauthbearer.token.endpoint.url", true},
		"HTML, 403": {func(i *issuer) { i.instead(403, "text/html", page) }, "look at sasl.oauthbearer.token.endpoint.url", true},
		"no expiry": {func(i *issuer) {
			i.instead(200, "application/json", `{"access_token":"eyJhbGciOiJub25lIn0.eyJzdWIiOiJuZWxpIn0.c2lnbmVk"}`)
		}, "look at sasl.oauthbearer.token.endpoint.url", true},
		"in the past": {func(i *issuer) {
			i.instead(200, "application/json", `{"access_token":"`+i.issue("neli", -time.Hour)+`"}`)
		}, "look at sasl.oauthbearer.token.endpoint.url", true},
		"hangs": {(*issuer).hang, "look at sasl.oauthbearer.token.endpoint.url", false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			i := newIssuer(t)
			tc.answer(i)
			cfg, log := b.member(t, name, neli.KafkaConfigMap{"sasl.oauthbearer.token.endpoint.url": i.URL + "/token"}, nil)
			m := hostileStart(t, cfg, log)
			if tc.ends {
				err := m.fails(t, time.Minute)
				t.Log(err)
				assert.ErrorIs(t, err, neli.ErrAccess)
				assert.ErrorContains(t, err, tc.says)
			} else {
				hostileUntil(t, time.Minute, func() bool { return len(log.with("level=WARN", "retrying", tc.says)) > 0 }, "it says why")
			}
			shows(t, log, m, "s3cret-page")
		})
	}
}
