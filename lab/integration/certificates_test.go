package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/kafkatest"
)

// A client with a trusted certificate is the principal that the certificate names. Others are refused.
func testCertificates(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	mtls := func(certificate, key string) (neli.Config, *hostileLog) {
		cfg, log := hostileConfig(cluster.MTLSBootstrap(), "mtls", hostileModes[0].set)
		maps.Copy(cfg.KafkaConfig, neli.KafkaConfigMap{"security.protocol": "SSL", "ssl.ca.pem": cluster.CAPEM(), "ssl.certificate.pem": certificate, "ssl.key.pem": key})
		admin.create(t, cfg.LeaderTopic, 1, 1, nil)
		return cfg, log
	}
	t.Run("trusted", func(t *testing.T) {
		certificate, key, err := cluster.ClientCertificate("invoicing")
		require.NoError(t, err)
		cfg, log := mtls(certificate, key)
		for _, r := range hostileRights["open"] {
			acl := r.acl("", cfg)
			acl.Principal = "User:CN=invoicing"
			require.NoError(t, cluster.Allow(t.Context(), acl))
		}
		hostileStart(t, cfg, log).leads(t, patience)
	})
	for name, pair := range map[string]keyPair{"unknown": selfSigned(t), "none": {}} {
		t.Run(name, func(t *testing.T) {
			cfg, log := mtls(pair.certificate, pair.key)
			err := hostileStart(t, cfg, log).fails(t, patience)
			assert.ErrorIs(t, err, neli.ErrAccess)
			assert.ErrorIs(t, err, kafka.ErrAuthentication)
		})
	}
}

// A member with wrong credentials, or one that does not trust the broker, gets an error within seconds.
func testStrangers(t *testing.T, cluster *kafkatest.Cluster) {
	strange := []struct {
		name  string
		props neli.KafkaConfigMap
		fatal bool
		says  string
	}{
		{"wrong password", neli.KafkaConfigMap{"sasl.password": "not-the-passw0rd"}, true, "invalid credentials"},
		{"unknown user", neli.KafkaConfigMap{"sasl.username": "nobody"}, true, "invalid credentials"},
		{"wrong mechanism", neli.KafkaConfigMap{"sasl.mechanism": "PLAIN"}, true, byClient("Unsupported SASL mechanism", "UNSUPPORTED_SASL_MECHANISM")},
		{"wrong CA", neli.KafkaConfigMap{"ssl.ca.pem": selfSigned(t).certificate}, true,
			byClient("certificate could not be verified", "failed to verify certificate")},
		// To the client these look like lost connections, which it retries.
		{"no TLS", neli.KafkaConfigMap{"security.protocol": "SASL_PLAINTEXT", "ssl.ca.pem": ""}, false,
			byClient("Disconnected", "plaintext connection speaking to a tls endpoint")},
		{"no authentication", neli.KafkaConfigMap{"security.protocol": "SSL"}, false,
			byClient("Disconnected", "broker closed the connection")},
	}
	members := map[string]*hostileMember{}
	for _, mode := range hostileModes {
		for _, s := range strange {
			cfg, log := hostileConfig("", "stranger", mode.set)
			secured(t, cluster, &cfg, hostileRights[mode.name]...)
			maps.Copy(cfg.KafkaConfig, s.props)
			if s.props["security.protocol"] == "SSL" { // credentials that have no effect are refused
				maps.DeleteFunc(cfg.KafkaConfig, func(name string, _ any) bool { return strings.HasPrefix(name, "sasl.") })
			}
			members[mode.name+s.name] = hostileStart(t, cfg, log)
		}
	}
	for _, mode := range hostileModes {
		for _, s := range strange {
			t.Run(mode.name+"/"+s.name, func(t *testing.T) {
				m := members[mode.name+s.name]
				if s.fatal {
					err := m.fails(t, patience) // 3 s on an idle machine
					t.Logf("failed after %v: %v", m.endedAt.Sub(m.began).Round(time.Millisecond), err)
					assert.ErrorIs(t, err, neli.ErrAccess)
					assert.ErrorIs(t, err, kafka.ErrAuthentication)
					assert.ErrorContains(t, err, "authentication")
					assert.ErrorContains(t, err, s.says)
					return
				}
				// The first line may give another reason, such as a handshake that took too long; the next one is 10 s later.
				hostileUntil(t, patience, func() bool {
					return len(m.log.with("level=WARN", "retrying", s.says, byClient(cluster.SecureBootstrap(), ""))) > 0
				}, "it says why")
				t.Log(m.log.with("level=WARN"))
				assert.Equal(t, neli.StateLive, m.State())
			})
		}
	}
}

type keyPair struct{ certificate, key string }

// selfSigned makes a certificate that no client trusts.
func selfSigned(t *testing.T) keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nobody"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return keyPair{
		certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
		key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}
}
