package integration

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
)

// testKeystores checks that the default client logs in with a certificate in PKCS#12, and with an encrypted key.
// With a wrong password New fails. franz-go refuses these properties by name. No error has the password.
func testKeystores(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	const password, wrong = "k3ystore-s3cret", "an0ther-s3cret"
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	certificate, key, err := cluster.ClientCertificate("keystore")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(at("certificate.pem"), []byte(certificate), 0o600))
	require.NoError(t, os.WriteFile(at("key.pem"), []byte(key), 0o600))
	openssl := func(args ...string) {
		out, err := exec.CommandContext(t.Context(), "openssl", args...).CombinedOutput()
		require.NoError(t, err, "openssl (Debian: apt-get install openssl): %s", out)
	}
	openssl("pkcs12", "-export", "-in", at("certificate.pem"), "-inkey", at("key.pem"), "-passout", "pass:"+password, "-out", at("store.p12"))
	openssl("pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", at("key.pem"), "-passout", "pass:"+password, "-out", at("encrypted.pem"))
	encrypted, err := os.ReadFile(at("encrypted.pem"))
	require.NoError(t, err)
	require.Contains(t, string(encrypted), "BEGIN ENCRYPTED PRIVATE KEY")
	for what, tc := range map[string]struct {
		props          neli.KafkaConfigMap
		password, file string // properties
	}{
		"PKCS#12": {neli.KafkaConfigMap{"ssl.keystore.location": at("store.p12"), "ssl.keystore.password": password},
			"ssl.keystore.password", "ssl.keystore.location PKCS#12 file: " + at("store.p12")},
		"encrypted key, file": {neli.KafkaConfigMap{"ssl.certificate.location": at("certificate.pem"), "ssl.key.location": at("encrypted.pem"),
			"ssl.key.password": password}, "ssl.key.password", "ssl.key.location"},
		"encrypted key, PEM": {neli.KafkaConfigMap{"ssl.certificate.pem": certificate, "ssl.key.pem": string(encrypted),
			"ssl.key.password": password}, "ssl.key.password", "ssl.key.pem"},
	} {
		config := func(name string) (neli.Config, *hostileLog) {
			cfg, log := hostileConfig(cluster.MTLSBootstrap(), "keystore", hostileModes[0].set)
			cfg.Provider, cfg.HeartbeatTimeout = clients[name](), 5*time.Second
			maps.Copy(cfg.KafkaConfig, neli.KafkaConfigMap{"security.protocol": "SSL", "ssl.ca.pem": cluster.CAPEM()})
			maps.Copy(cfg.KafkaConfig, tc.props)
			return cfg, log
		}
		t.Run(what, func(t *testing.T) {
			cfg, log := config("confluent")
			cfg.KafkaConfig["debug"] = "security"
			admin.create(t, cfg.LeaderTopic, 1, 1, nil)
			for _, r := range hostileRights["open"] {
				require.NoError(t, cluster.Allow(t.Context(), r.acl("CN=keystore", cfg)))
			}
			m := hostileStart(t, cfg, log)
			m.leads(t, time.Minute)
			shows(t, log, m, password)
		})
		t.Run(what+", wrong password", func(t *testing.T) {
			cfg, log := config("confluent")
			cfg.KafkaConfig[tc.password] = wrong
			n, err := neli.New(cfg)
			if !assert.Error(t, err) {
				_ = n.Close()
				return
			}
			t.Log(err)
			assert.ErrorContains(t, err, tc.file)
			assert.NotContains(t, err.Error(), wrong)
			assert.Empty(t, log.with(wrong))
		})
		t.Run(what+", franz", func(t *testing.T) {
			cfg, _ := config("franz")
			n, err := neli.New(cfg)
			if !assert.Error(t, err) {
				_ = n.Close()
				return
			}
			t.Log(err)
			assert.ErrorContains(t, err, tc.password)
			assert.NotContains(t, err.Error(), password)
		})
	}
}
