package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/integration/kafkatest"
)

// The right to do one thing, as the README's table names it.
type hostileRight struct{ operation, resource string }

var (
	readTopic   = hostileRight{"READ", "topic"}
	writeTopic  = hostileRight{"WRITE", "topic"}
	readGroup   = hostileRight{"READ", "group"}
	createTopic = hostileRight{"CREATE", "topic"}
	showConfigs = hostileRight{"DESCRIBE_CONFIGS", "topic"}
)

// hostileRights is the README's table: what each mode needs on an existing topic.
// To create it takes createTopic besides; showConfigs is for the warnings only.
var hostileRights = map[string][]hostileRight{
	"open":          {readTopic, writeTopic},
	"assigned":      {readTopic, writeTopic, readGroup},
	"non-exclusive": {readTopic, writeTopic, readGroup},
}

// acl is the right in Kafka's words.
func (r hostileRight) acl(user string, cfg neli.Config) kafkatest.ACL {
	name := cfg.LeaderTopic
	if r.resource == "group" {
		name = cfg.LeaderGroupID
	}
	return kafkatest.ACL{Principal: "User:" + user, ResourceType: r.resource, Name: name, Operation: strings.ToLower(r.operation)}
}

// named is how an error names the right.
func (r hostileRight) named(cfg neli.Config) string {
	return r.operation + " " + r.resource + " " + r.acl("", cfg).Name
}

const hostilePassword = "s3same-0pen/+="

// secured makes cfg that of a new user with these rights.
func secured(t *testing.T, cluster *kafkatest.Cluster, cfg *neli.Config, rights ...hostileRight) (user string) {
	t.Helper()
	user = cfg.LeaderGroupID + "-user"
	require.NoError(t, cluster.AddUser(t.Context(), user, hostilePassword))
	var acls []kafkatest.ACL
	for _, r := range rights {
		acls = append(acls, r.acl(user, *cfg))
	}
	if len(acls) > 0 {
		require.NoError(t, cluster.Allow(t.Context(), acls...))
	}
	maps.Copy(cfg.KafkaConfig, neli.KafkaConfigMap{
		"bootstrap.servers": cluster.SecureBootstrap(),
		"security.protocol": "SASL_SSL",
		"ssl.ca.pem":        cluster.CAPEM(),
		"sasl.mechanism":    "SCRAM-SHA-512",
		"sasl.username":     user,
		"sasl.password":     hostilePassword,
	})
	return user
}

func TestSecured(t *testing.T) {
	cluster := kafkatest.Run(t, kafkatest.Options{Secure: true, BrokerProps: hostileBroker()})
	admin := newHostileAdmin(t, cluster.Bootstrap())

	t.Run("rights", func(t *testing.T) { testRights(t, cluster, admin) })
	t.Run("a right withdrawn", func(t *testing.T) { testWithdrawn(t, cluster, admin) })
	t.Run("strangers", func(t *testing.T) { testStrangers(t, cluster) })
	t.Run("secrets", func(t *testing.T) { testSecrets(t, cluster, admin) })
}

// The rights of the table suffice, and each is needed.
func testRights(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	type rightsCase struct {
		name    string
		set     func(*neli.Config)
		rights  []hostileRight
		exists  bool          // the topic
		missing *hostileRight // nil: it leads
	}
	var cases []rightsCase
	for _, mode := range hostileModes {
		needed := hostileRights[mode.name]
		creating := append(slices.Clone(needed), createTopic)
		cases = append(cases,
			rightsCase{mode.name + "/existing topic", mode.set, needed, true, nil},
			rightsCase{mode.name + "/existing topic, with the configs", mode.set, append(slices.Clone(needed), showConfigs), true, nil},
			rightsCase{mode.name + "/new topic", mode.set, creating, false, nil},
			rightsCase{mode.name + "/new topic, not allowed to", mode.set, needed, false, &createTopic})
		for i, r := range needed {
			left := slices.Delete(slices.Clone(needed), i, i+1)
			cases = append(cases, rightsCase{mode.name + "/without " + r.operation + " on the " + r.resource, mode.set, left, true, &r})
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg, log := hostileConfig("", "rights", c.set)
			secured(t, cluster, &cfg, c.rights...)
			if c.exists {
				admin.create(t, cfg.LeaderTopic, 1, 1, nil)
			}
			m := hostileStart(t, cfg, log)
			if c.missing == nil {
				t.Logf("led after %v", m.leads(t, 30*time.Second).Round(time.Millisecond))
				withConfigs := slices.Contains(c.rights, showConfigs)
				assert.Equal(t, !withConfigs, len(log.with("DESCRIBE_CONFIGS topic "+cfg.LeaderTopic)) == 1,
					"what was not allowed and not needed costs one line")
				return
			}
			err := m.fails(t, 30*time.Second)
			t.Logf("failed after %v: %v", time.Since(m.began).Round(time.Millisecond), err)
			assert.ErrorIs(t, err, neli.ErrAccess)
			assert.ErrorIs(t, err, neli.ErrAuthorization)
			assert.ErrorContains(t, err, c.missing.named(cfg))
			assert.False(t, errors.Is(err, neli.ErrAuthentication))
		})
	}
}

// A right that is withdrawn from a leader ends it too, not at once: a broker that
// has just started refuses everybody.
func testWithdrawn(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	for _, mode := range hostileModes {
		for _, r := range hostileRights[mode.name] {
			t.Run(mode.name+"/"+r.operation+" on the "+r.resource, func(t *testing.T) {
				t.Parallel()
				cfg, log := hostileConfig("", "withdrawn", mode.set)
				user := secured(t, cluster, &cfg, hostileRights[mode.name]...)
				admin.create(t, cfg.LeaderTopic, 1, 1, nil)
				m := hostileStart(t, cfg, log)
				m.leads(t, 30*time.Second)

				withdrawn := time.Now()
				require.NoError(t, cluster.Revoke(t.Context(), r.acl(user, cfg)))
				err := m.fails(t, 40*time.Second)
				t.Logf("failed after %v: %v", time.Since(withdrawn).Round(time.Millisecond), err)
				assert.ErrorIs(t, err, neli.ErrAccess)
				assert.ErrorContains(t, err, r.named(cfg))
			})
		}
	}
}

// Who cannot prove who they are, or to whom the broker cannot, is told so within
// seconds.
func testStrangers(t *testing.T, cluster *kafkatest.Cluster) {
	strange := map[string]neli.KafkaConfigMap{
		"wrong password":    {"sasl.password": "not-the-passw0rd"},
		"unknown user":      {"sasl.username": "nobody"},
		"wrong mechanism":   {"sasl.mechanism": "PLAIN"},
		"wrong CA":          {"ssl.ca.pem": selfSigned(t).certificate},
		"no TLS":            {"security.protocol": "SASL_PLAINTEXT", "ssl.ca.pem": ""},
		"no authentication": {"security.protocol": "SSL"},
	}
	for _, mode := range hostileModes {
		for what, props := range strange {
			t.Run(mode.name+"/"+what, func(t *testing.T) {
				t.Parallel()
				cfg, log := hostileConfig("", "stranger", mode.set)
				secured(t, cluster, &cfg, hostileRights[mode.name]...)
				maps.Copy(cfg.KafkaConfig, props)
				cfg.KafkaConfig["debug"] = "all"
				m := hostileStart(t, cfg, log)
				select {
				case <-m.ended:
					t.Logf("ended after %v with %v", time.Since(m.began).Round(time.Millisecond), m.err)
				case <-time.After(12 * time.Second):
					t.Logf("goes on; says %v", log.with("level=WARN"))
				}
			})
		}
	}
}

func testSecrets(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
}

type keyPair struct{ certificate, key string }

// selfSigned makes a certificate that nobody knows.
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
