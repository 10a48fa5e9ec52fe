package integration

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/kafkatest"
)

// hostileRight is the right to do one thing, as the table of docs/security.md names it.
type hostileRight struct{ operation, resource string }

var (
	readTopic   = hostileRight{"READ", "topic"}
	writeTopic  = hostileRight{"WRITE", "topic"}
	readGroup   = hostileRight{"READ", "group"}
	createTopic = hostileRight{"CREATE", "topic"}
	showConfigs = hostileRight{"DESCRIBE_CONFIGS", "topic"}
)

// hostileRights is the table of docs/security.md: the rights that each mode needs on an existing topic. Creating it also
// needs createTopic. showConfigs is only for the warnings.
var hostileRights = map[string][]hostileRight{
	"open":          {readTopic, writeTopic},
	"assigned":      {readTopic, writeTopic, readGroup},
	"non-exclusive": {readTopic, writeTopic, readGroup},
}

// acl returns the right as an ACL of Kafka.
func (r hostileRight) acl(user string, cfg neli.Config) kafkatest.ACL {
	name := cfg.LeaderTopic
	if r.resource == "group" {
		name = cfg.LeaderGroupID
	}
	return kafkatest.ACL{Principal: "User:" + user, ResourceType: r.resource, Name: name, Operation: strings.ToLower(r.operation)}
}

// named returns the name of the right in errors.
func (r hostileRight) named(cfg neli.Config) string {
	return r.operation + " " + r.resource + " " + r.acl("", cfg).Name
}

const hostilePassword = "s3same-0pen/+="

// secured makes cfg use a new user with these rights.
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
	cluster := kafkatest.Run(t, kafkatest.Options{Secure: true, BrokerProps: steadyBroker()})
	admin := newHostileAdmin(t, cluster.Bootstrap())

	t.Run("rights", func(t *testing.T) { testRights(t, cluster, admin) })
	t.Run("an observer only reads", func(t *testing.T) { testObserverRights(t, cluster, admin) })
	t.Run("a right withdrawn", func(t *testing.T) { testWithdrawn(t, cluster, admin) })
	t.Run("a right missing briefly", func(t *testing.T) { testBriefly(t, cluster, admin) })
	t.Run("certificates", func(t *testing.T) { testCertificates(t, cluster, admin) })
	t.Run("keystores", func(t *testing.T) { testKeystores(t, cluster, admin) })
	t.Run("strangers", func(t *testing.T) { testStrangers(t, cluster) })
	t.Run("secrets", func(t *testing.T) { testSecrets(t, cluster, admin) })
}

// The rights of the table suffice, and each is needed.
func testRights(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	type rightsCase struct {
		*hostileMember
		name    string
		set     func(*neli.Config)
		props   neli.KafkaConfigMap
		rights  []hostileRight
		exists  bool   // the topic
		missing string // what the error names; "": it leads
		cfg     neli.Config
		log     *hostileLog
	}
	var cases []*rightsCase
	add := func(c rightsCase) { cases = append(cases, &c) }
	for _, mode := range hostileModes {
		needed := hostileRights[mode.name]
		plus := func(r hostileRight) []hostileRight { return append(slices.Clone(needed), r) }
		add(rightsCase{name: mode.name + "/existing topic", set: mode.set, rights: needed, exists: true})
		add(rightsCase{name: mode.name + "/existing topic and its settings", set: mode.set, rights: plus(showConfigs), exists: true})
		add(rightsCase{name: mode.name + "/new topic", set: mode.set, rights: plus(createTopic)})
		add(rightsCase{name: mode.name + "/new topic without CREATE", set: mode.set, rights: needed, missing: "CREATE topic"})
		add(rightsCase{name: mode.name + "/none", set: mode.set, exists: true, missing: "DESCRIBE topic"})
		for i, r := range needed {
			add(rightsCase{name: mode.name + "/without " + r.operation + " on the " + r.resource, set: mode.set, exists: true,
				rights: slices.Delete(slices.Clone(needed), i, i+1), missing: r.operation + " " + r.resource})
		}
	}
	add(rightsCase{name: "an idempotent producer needs no more", set: hostileModes[0].set, rights: hostileRights["open"], exists: true,
		props: neli.KafkaConfigMap{"enable.idempotence": true}})
	newProtocol := func(c *neli.Config) { c.KafkaConfig["group.protocol"] = "consumer" }
	add(rightsCase{name: "the new group protocol needs no more", set: newProtocol, rights: hostileRights["assigned"], exists: true})
	add(rightsCase{name: "the new group protocol/without READ on the group", set: newProtocol, rights: hostileRights["open"], exists: true,
		missing: "READ group"})
	for _, c := range cases {
		c.cfg, c.log = hostileConfig("", "rights", c.set)
		secured(t, cluster, &c.cfg, c.rights...)
		if c.exists {
			admin.create(t, c.cfg.LeaderTopic, 1, 1, nil)
		}
		if c.props != nil {
			maps.Copy(c.cfg.KafkaConfig, c.props)
		}
		c.hostileMember = hostileStart(t, c.cfg, c.log)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.missing == "" {
				c.leads(t, patience)
				withConfigs := slices.Contains(c.rights, showConfigs)
				assert.Equal(t, !withConfigs, len(c.log.with("level=INFO", "DESCRIBE_CONFIGS topic "+c.cfg.LeaderTopic)) == 1,
					"what was not allowed and not needed costs one line")
				assert.Empty(t, c.log.with("level=WARN", "not authorized"))
				return
			}
			err := c.fails(t, patience)
			t.Logf("failed after %v: %v", c.endedAt.Sub(c.began).Round(time.Millisecond), err)
			assert.ErrorIs(t, err, neli.ErrAccess)
			assert.ErrorIs(t, err, kafka.ErrAuthorization)
			assert.NotErrorIs(t, err, kafka.ErrAuthentication)
			assert.ErrorContains(t, err, c.missing+" "+c.cfg.LeaderGroupID, "the topic is named after the group")
		})
	}
}

// An observer needs only READ on the topic, even if its producer is configured to be idempotent. Without READ it fails, and
// its error names the right.
func testObserverRights(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	cfg, log := hostileConfig("", "observed", hostileModes[0].set)
	secured(t, cluster, &cfg, hostileRights[hostileModes[0].name]...)
	admin.create(t, cfg.LeaderTopic, 1, 1, nil)
	leader := hostileStart(t, cfg, log)
	leader.leads(t, patience)
	observe := func(rights ...hostileRight) *neli.Neli {
		o, _ := hostileConfig("", "observer", func(c *neli.Config) { c.Observer = true })
		o.LeaderTopic = cfg.LeaderTopic
		secured(t, cluster, &o, rights...)
		o.LeaderGroupID = cfg.LeaderGroupID
		o.KafkaConfig["enable.idempotence"] = true
		n, err := neli.New(o)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, n.Close()) })
		return n
	}
	n := observe(readTopic)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	known := false
	for s := range n.Watch(ctx) {
		if s.Status == neli.StatusHeld {
			assert.Equal(t, leader.Config().Name, s.Holder.Name)
			// A leader that got no processor for T is in another term by now, or soon: that term comes, too.
			token, ok := leader.Token(0)
			if known = ok && token == s.Holder.Token; known {
				break
			}
		}
	}
	require.True(t, known, "the leader is not known: %v", n.State())
	err := observe().Await()
	assert.ErrorIs(t, err, neli.ErrAccess)
}

// A leader that loses a right stops leading only until it has the right again. It logs which right it lacks.
func testWithdrawn(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	type leader struct {
		*hostileMember
		name, user string
		cfg        neli.Config
		right      hostileRight
		withdrawn  time.Time
	}
	var leaders []*leader
	for _, mode := range hostileModes {
		for _, r := range hostileRights[mode.name] {
			cfg, log := hostileConfig("", "withdrawn", mode.set)
			l := &leader{name: mode.name + "/" + r.operation + " on the " + r.resource, cfg: cfg, right: r}
			l.user = secured(t, cluster, &cfg, hostileRights[mode.name]...)
			admin.create(t, cfg.LeaderTopic, 1, 1, nil)
			l.hostileMember = hostileStart(t, cfg, log)
			leaders = append(leaders, l)
		}
	}
	for _, l := range leaders {
		l.leads(t, patience)
		l.withdrawn = time.Now()
		require.NoError(t, cluster.Revoke(t.Context(), l.right.acl(l.user, l.cfg)))
	}
	for _, l := range leaders {
		t.Run(l.name, func(t *testing.T) {
			hostileUntil(t, patience, func() bool {
				return time.Since(l.withdrawn) > 15*time.Second && len(l.log.with("level=WARN", "retrying", l.right.named(l.cfg))) > 0
			}, "it says what it lacks")
			assert.Equal(t, neli.StateLive, l.State())
			require.NoError(t, cluster.Allow(t.Context(), l.right.acl(l.user, l.cfg)))
			l.leads(t, patience)
		})
	}
}

// A right that is missing only for a moment does not end a member.
func testBriefly(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	for _, mode := range hostileModes {
		t.Run(mode.name, func(t *testing.T) {
			cfg, log := hostileConfig("", "briefly", mode.set)
			user := secured(t, cluster, &cfg, hostileRights[mode.name]...)
			admin.create(t, cfg.LeaderTopic, 1, 1, nil)
			m := hostileStart(t, cfg, log)
			m.leads(t, patience)
			read := readTopic.acl(user, cfg)
			said := func() int { return len(log.with("level=WARN", "not authorized")) }
			require.Zero(t, said())
			revoked := time.Now()
			require.NoError(t, cluster.Revoke(t.Context(), read))
			// It may lapse first, or for want of CPU: the right has to be missing for long enough to be noticed.
			hostileUntil(t, patience, func() bool { return said() > 0 && !m.IsLeader() }, "it says so, and has lapsed")
			require.NoError(t, cluster.Allow(t.Context(), read))
			m.leads(t, patience)
			assert.LessOrEqual(t, said(), 1+int(time.Since(revoked)/(10*time.Second)), "it says so every ten seconds at most")
		})
	}
}

// No secret is logged, at any level, not even by a client that is configured to log everything.
func testSecrets(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	pair := selfSigned(t)
	const oauthSecret = "0auth-cl1ent-secret"
	token := "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil,
		`{"sub":"someone","iat":%d,"exp":%d}`, time.Now().Unix(), time.Now().Add(time.Hour).Unix())) + ".c2lnbmVk"
	var asked atomic.Int64
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, token)
	}))
	defer issuer.Close()

	secrets := []string{hostilePassword, "not-the-passw0rd", oauthSecret, token, base64.StdEncoding.EncodeToString([]byte(hostilePassword))}
	for line := range strings.Lines(pair.key) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
			secrets = append(secrets, line)
		}
	}
	shown := 100
	if byClient("all", "less") == "less" {
		shown = 10 // a client that is refused at once logs no more
	}
	type secretsCase struct {
		*hostileMember
		name  string
		props neli.KafkaConfigMap
		leads bool
	}
	var cases []*secretsCase
	for _, mode := range hostileModes {
		for _, c := range []secretsCase{ // franz-go asks for a token when the broker takes the mechanism: TestTokens shows that
			{name: "password and key", props: neli.KafkaConfigMap{"ssl.key.pem": pair.key, "ssl.certificate.pem": pair.certificate}, leads: true},
			{name: "wrong password", props: neli.KafkaConfigMap{"sasl.password": "not-the-passw0rd"}},
			{name: "token", props: neli.KafkaConfigMap{
				"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "neli",
				"sasl.oauthbearer.client.secret": oauthSecret, "sasl.oauthbearer.token.endpoint.url": issuer.URL,
			}},
		} {
			if c.name == "token" && byClient("taken", "refused") == "refused" {
				asked.Add(1)
				continue
			}
			cfg, log := hostileConfig("", "secrets", mode.set)
			secured(t, cluster, &cfg, hostileRights[mode.name]...)
			admin.create(t, cfg.LeaderTopic, 1, 1, nil)
			maps.Copy(cfg.KafkaConfig, c.props)
			cfg.KafkaConfig["debug"] = "all"
			c.name += "/" + mode.name
			c.hostileMember = hostileStart(t, cfg, log)
			cases = append(cases, &c)
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.leads {
				c.hostileMember.leads(t, patience)
			} else {
				assert.ErrorIs(t, c.fails(t, patience), neli.ErrAccess)
			}
			require.NoError(t, c.Close())
			<-c.ended
			assert.NotEmpty(t, c.log.with(byClient("[redacted]", ""))) // franz-go shows none
			assert.Greater(t, len(c.log.with("level=DEBUG")), shown, "the client did show everything")
			for _, s := range secrets {
				assert.Empty(t, c.log.with(s), "%q was logged", s)
				assert.NotContains(t, c.err.Error(), s)
			}
		})
	}
	assert.Positive(t, asked.Load(), "a token was issued")
}
