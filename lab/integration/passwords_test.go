package integration

import (
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/kafkatest"
)

// plainUser is the user that may log in by PLAIN.
const plainUser, plainPassword = "plain", "pl4in-s3cret"

// plainProperties make a secure broker accept PLAIN, too.
func plainProperties() map[string]string {
	const listener = "listener.name.sasl_ssl."
	return map[string]string{
		listener + "sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN",
		listener + "plain.sasl.jaas.config":  "org.apache.kafka.common.security.plain.PlainLoginModule required user_" + plainUser + `="` + plainPassword + `";`,
	}
}

// byPassword returns the configuration of a member that logs in by name and password.
func (b *tokenBed) byPassword(t *testing.T, name, mechanism string, props neli.KafkaConfigMap) (neli.Config, *hostileLog) {
	t.Helper()
	cfg, log := hostileConfig("", "password", hostileModes[0].set)
	cfg.Provider, cfg.HeartbeatTimeout = clients[name](), 5*time.Second
	secured(t, b.cluster, &cfg, hostileRights["open"]...)
	cfg.KafkaConfig["sasl.mechanism"] = mechanism
	if mechanism == "PLAIN" {
		cfg.KafkaConfig["sasl.username"], cfg.KafkaConfig["sasl.password"] = plainUser, plainPassword
		for _, r := range hostileRights["open"] {
			require.NoError(t, b.cluster.Allow(t.Context(), r.acl(plainUser, cfg)))
		}
	}
	maps.Copy(cfg.KafkaConfig, props)
	b.admin.create(t, cfg.LeaderTopic, 1, 1, nil)
	return cfg, log
}

// testPasswords checks that a member can lead with each mechanism of name and password, and that a
// wrong password ends it.
func testPasswords(t *testing.T, b *tokenBed, name string) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			cfg, log := b.byPassword(t, name, mechanism, neli.KafkaConfigMap{"debug": "all"})
			m := hostileStart(t, cfg, log)
			m.leads(t, 45*time.Second)
			shows(t, log, m, plainPassword, hostilePassword)
		})
		t.Run(mechanism+", wrong", func(t *testing.T) {
			t.Parallel()
			cfg, log := b.byPassword(t, name, mechanism, neli.KafkaConfigMap{"sasl.password": "an0ther-s3cret"})
			m := hostileStart(t, cfg, log)
			err := m.fails(t, 45*time.Second)
			t.Log(err)
			assert.ErrorIs(t, err, neli.ErrAccess)
			assert.ErrorIs(t, err, kafka.ErrAuthentication)
			shows(t, log, m, "an0ther-s3cret")
		})
	}
}

// testRefusedLater checks a member that leads while the endpoint refuses later tokens. That is logged and retried,
// and costs leadership only while no token is valid.
func testRefusedLater(t *testing.T, b *tokenBed, name string) {
	front := newIssuer(t) // the broker trusts only the tokens of b.issuer
	pass := http.HandlerFunc(b.issuer.token)
	front.answers.Store(&pass)
	cfg, log := b.member(t, name, neli.KafkaConfigMap{"sasl.oauthbearer.token.endpoint.url": front.URL + "/token"}, nil, hostileRights["open"]...)
	m := hostileStart(t, cfg, log)
	m.leads(t, 45*time.Second)
	front.instead(http.StatusUnauthorized, "application/json", `{"error":"invalid_client"}`)
	refused := time.Now()
	hostileUntil(t, 2*issuerLife, func() bool {
		return m.Stats().LoginFailures > 0 && len(log.with("level=WARN", "no token to log in with, retrying", "look at sasl.oauthbearer.client.id")) > 0
	}, "it says which property to look at")
	hostileUntil(t, 2*issuerLife, func() bool { return time.Since(refused) > issuerLife+5*time.Second }, "all tokens are over")
	require.Equal(t, neli.StateLive, m.State(), "what worked once is retried")
	front.answers.Store(&pass)
	m.leads(t, time.Until(m.began.Add(4*issuerLife))+time.Minute)
	shows(t, log, m)
}

// testSecureEndpoint checks that the endpoint's certificate is verified against the configured CA.
func testSecureEndpoint(t *testing.T, b *tokenBed, name string) {
	endpoint := httptest.NewTLSServer(http.HandlerFunc(b.issuer.token))
	t.Cleanup(endpoint.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: endpoint.Certificate().Raw}))
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, []byte(ca), 0o600))
	for what, tc := range map[string]struct {
		props neli.KafkaConfigMap
		says  string // nothing: it leads
	}{
		"known":        {neli.KafkaConfigMap{"https.ca.pem": ca}, ""},
		"known, file":  {neli.KafkaConfigMap{"https.ca.location": file}, ""},
		"another's":    {neli.KafkaConfigMap{"https.ca.pem": b.cluster.CAPEM()}, "look at https.ca.location"},
		"the system's": {nil, "look at https.ca.location"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cfg, log := b.member(t, name, neli.KafkaConfigMap{"sasl.oauthbearer.token.endpoint.url": endpoint.URL + "/token"}, nil, hostileRights["open"]...)
			maps.Copy(cfg.KafkaConfig, tc.props)
			m := hostileStart(t, cfg, log)
			if tc.says == "" {
				m.leads(t, 45*time.Second)
			} else {
				err := m.fails(t, 45*time.Second)
				t.Log(err)
				assert.ErrorIs(t, err, neli.ErrAccess)
				assert.ErrorContains(t, err, tc.says)
			}
			shows(t, log, m)
		})
	}
}

// The files of a client's certificate are replaced while it leads, and the former certificate loses its rights. franz-go uses
// the new one when it connects again. librdkafka reads the files only once: it logs the right that it lacks, and a new member
// can log in.
func TestReplacedCertificate(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Run(t, kafkatest.Options{Secure: true, BrokerProps: hostileBroker()})
	admin := newHostileAdmin(t, cluster.Bootstrap())
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "certificate.pem"), filepath.Join(dir, "key.pem")
	replace := func(by string) {
		c, k, err := cluster.ClientCertificate(by)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(certificate, []byte(c), 0o600))
		require.NoError(t, os.WriteFile(key, []byte(k), 0o600))
	}
	replace("before")
	var former []kafkatest.ACL
	members, configs := map[string]*hostileMember{}, map[string]neli.Config{}
	for name, provider := range clients {
		cfg, log := hostileConfig(cluster.MTLSBootstrap(), "replaced", hostileModes[0].set)
		cfg.Provider, cfg.HeartbeatTimeout = provider(), 5*time.Second
		maps.Copy(cfg.KafkaConfig, neli.KafkaConfigMap{"security.protocol": "SSL", "ssl.ca.pem": cluster.CAPEM(),
			"ssl.certificate.location": certificate, "ssl.key.location": key})
		admin.create(t, cfg.LeaderTopic, 1, 1, nil)
		for _, r := range hostileRights["open"] {
			for _, by := range []string{"before", "after"} {
				acl := r.acl("CN="+by, cfg)
				require.NoError(t, cluster.Allow(t.Context(), acl))
				if by == "before" {
					former = append(former, acl)
				}
			}
		}
		members[name], configs[name] = hostileStart(t, cfg, log), cfg
	}
	for _, m := range members {
		m.leads(t, 45*time.Second)
	}
	replace("after")
	require.NoError(t, cluster.Brokers()[0].Restart(t.Context())) // all connect again
	for _, m := range members {
		m.leads(t, time.Minute)
	}
	require.NoError(t, cluster.Revoke(t.Context(), former...))
	old, reads := members["confluent"], members["franz"]
	read := reads.Stats().Records
	hostileUntil(t, time.Minute, func() bool {
		return len(old.log.with("level=WARN", "retrying", "topic "+configs["confluent"].LeaderTopic)) > 0
	}, "it says what it lacks")
	assert.Equal(t, neli.StateLive, old.State())
	hostileUntil(t, time.Minute, func() bool { return reads.Stats().Records > read+1 && reads.IsLeader() }, "the other reads on, and leads")
	assert.Empty(t, reads.log.with("level=WARN", "not authorized"))

	require.NoError(t, old.Close())
	logger, log := newHostileLogger()
	again := configs["confluent"]
	again.Logger = logger
	hostileStart(t, again, log).leads(t, time.Minute)
}

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
