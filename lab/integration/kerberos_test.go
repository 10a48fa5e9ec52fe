package integration

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"

	"github.com/goneli/neli"
	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/nursery"
)

// realm is a Kerberos realm with a key distribution centre of its own, MIT's.
type realm struct {
	dir, config string
	env         []string
}

const realmName = "NELI.TEST"

// newRealm starts a realm with these principals.
func newRealm(t *testing.T, principals ...string) *realm {
	t.Helper()
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	for _, program := range []string{"krb5kdc", "kdb5_util", "kadmin.local"} {
		if _, err := exec.LookPath(program); err != nil {
			say := t.Skipf
			if os.Getenv(kafkatest.EnvRequire) == "1" {
				say = t.Fatalf
			}
			say("%s is missing (Debian: apt-get install krb5-kdc krb5-admin-server)", program)
		}
	}
	dir := t.TempDir()
	r := &realm{dir: dir, config: filepath.Join(dir, "krb5.conf")}
	free, err := kafkatest.FreeAddrs(1) // no outgoing connection takes it before the centre does
	require.NoError(t, err)
	address := free[0]
	_, port, _ := net.SplitHostPort(address)
	r.write(t, "krb5.conf", fmt.Sprintf("[libdefaults]\n default_realm = %s\n udp_preference_limit = 1\n dns_lookup_kdc = false\n rdns = false\n"+
		"[realms]\n %s = {\n  kdc = %s\n }\n", realmName, realmName, address))
	r.write(t, "kdc.conf", fmt.Sprintf("[kdcdefaults]\n kdc_ports = \"\"\n kdc_listen = \"\"\n kdc_tcp_listen = %s\n"+
		"[realms]\n %s = {\n  database_name = %s/principal\n  key_stash_file = %s/stash\n  supported_enctypes = aes256-cts:normal\n }\n", port, realmName, dir, dir))
	r.env = append(os.Environ(), "KRB5_CONFIG="+r.config, "KRB5_KDC_PROFILE="+filepath.Join(dir, "kdc.conf"))
	r.run(t, "kdb5_util", "create", "-s", "-r", realmName, "-P", "master")
	for _, p := range principals {
		r.run(t, "kadmin.local", "-r", realmName, "-q", "addprinc -randkey "+p)
		r.run(t, "kadmin.local", "-r", realmName, "-q", "ktadd -k "+r.keytab(p)+" "+p)
	}
	children, err := nursery.New("")
	require.NoError(t, err)
	t.Cleanup(children.Close)
	kdc := exec.Command("krb5kdc", "-n", "-r", realmName)
	kdc.Env = r.env
	var said bytes.Buffer
	kdc.Stdout, kdc.Stderr = &said, &said
	process, err := children.Start(kdc)
	require.NoError(t, err)
	hostileUntil(t, time.Minute, func() bool {
		require.True(t, process.Running(), "the key distribution centre has ended: %s", &said)
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, "the key distribution centre answers")
	return r
}

func (r *realm) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600))
}

func (r *realm) run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = r.env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", name, out)
}

// keytab returns the file with a principal's key.
func (r *realm) keytab(principal string) string {
	return filepath.Join(r.dir, strings.ReplaceAll(principal, "/", "-")+".keytab")
}

// client logs in as a principal with the key of keyOf. If the two differ, the login must fail.
func (r *realm) client(t *testing.T, principal, keyOf string) *krb.Client {
	t.Helper()
	cfg, err := config.Load(r.config)
	require.NoError(t, err)
	key, err := keytab.Load(r.keytab(keyOf))
	require.NoError(t, err)
	return krb.NewWithKeytab(principal, realmName, key, cfg)
}

// A member on franz-go logs in with Kerberos, leads, and takes its rights from its principal's name. All clients of a
// member share its mechanism.
func TestKerberos(t *testing.T) {
	r := newRealm(t, "kafka/127.0.0.1", "invoicing", "stranger")
	cluster := kafkatest.Run(t, kafkatest.Options{Secure: true, BrokerProps: hostileBroker(),
		Kerberos: &kafkatest.Kerberos{Config: r.config, Keytab: r.keytab("kafka/127.0.0.1"), Principal: "kafka/127.0.0.1@" + realmName}})
	admin := newHostileAdmin(t, cluster.Bootstrap())
	member := func(t *testing.T, c *krb.Client, props neli.KafkaConfigMap) *hostileMember {
		cfg, log := hostileConfig(cluster.KerberosBootstrap(), "kerberos", hostileModes[0].set)
		cfg.HeartbeatTimeout = 5 * time.Second
		cfg.Provider = franz.Provider(kgo.SASL(kerberos.Auth{Client: c, Service: "kafka"}.AsMechanism()))
		maps.Copy(cfg.KafkaConfig, props)
		admin.create(t, cfg.LeaderTopic, 1, 1, nil)
		for _, right := range hostileRights["open"] {
			require.NoError(t, cluster.Allow(t.Context(), right.acl("invoicing", cfg)))
		}
		t.Cleanup(c.Destroy)
		return hostileStart(t, cfg, log)
	}
	t.Run("leads", func(t *testing.T) {
		m := member(t, r.client(t, "invoicing", "invoicing"), nil)
		t.Logf("leads after %v", m.leads(t, time.Minute))
		require.NoError(t, cluster.Brokers()[0].Restart(t.Context())) // all connect again
		m.leads(t, time.Minute)
	})
	t.Run("without rights", func(t *testing.T) {
		err := member(t, r.client(t, "stranger", "stranger"), nil).fails(t, time.Minute)
		assert.ErrorIs(t, err, neli.ErrAccess)
		assert.ErrorIs(t, err, kafka.ErrAuthorization)
	})
	t.Run("wrong key", func(t *testing.T) {
		m := member(t, r.client(t, "invoicing", "stranger"), nil)
		hostileUntil(t, time.Minute, func() bool { return len(m.log.with("level=WARN", "retrying", "keytab incorrect")) > 0 }, "it says why")
		t.Log(m.log.with("level=WARN"))
	})
}
