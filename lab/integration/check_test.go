package integration

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/nursery"
)

// buildCommand returns the file of the command neli.
func buildCommand(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "neli")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../../cmd/neli", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// testCheckedLogins runs neli check against brokers that refuse its login. It prints one sentence, which names the
// property to look at, and shows no secret.
func testCheckedLogins(t *testing.T, b *tokenBed) {
	program := buildCommand(t)
	without := func(props neli.KafkaConfigMap, prefix string) neli.KafkaConfigMap {
		props = maps.Clone(props)
		maps.DeleteFunc(props, func(name string, _ any) bool { return strings.HasPrefix(name, prefix) })
		return props
	}
	with := func(props, more neli.KafkaConfigMap) neli.KafkaConfigMap {
		props = maps.Clone(props)
		maps.Copy(props, more)
		return props
	}
	page, lasting, expired, hanging := newIssuer(t), newIssuer(t), newIssuer(t), newIssuer(t)
	page.instead(200, "text/html", "<html>s3cret-page</html>")
	lasting.instead(200, "application/json", `{"access_token":"eyJhbGciOiJub25lIn0.eyJzdWIiOiJuZWxpIn0.c2lnbmVk"}`)
	expired.instead(200, "application/json", `{"access_token":"`+expired.issue("neli", -time.Hour)+`"}`)
	hanging.hang()
	endpoint := httptest.NewTLSServer(http.HandlerFunc(b.issuer.token))
	t.Cleanup(endpoint.Close)
	endpointOf := func(url string) neli.KafkaConfigMap {
		return neli.KafkaConfigMap{"sasl.oauthbearer.token.endpoint.url": url + "/token"}
	}
	tokens, _ := b.member(t, "franz", nil, nil, hostileRights["open"]...)
	reads, _ := b.member(t, "franz", nil, nil, readTopic)
	password, _ := b.byPassword(t, "franz", "SCRAM-SHA-256", nil)
	plain, _ := b.byPassword(t, "franz", "PLAIN", nil)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, []byte(b.cluster.CAPEM()), 0o600))
	for _, cfg := range []*neli.Config{&password, &plain} { // a value in a file of properties must fit in one line
		delete(cfg.KafkaConfig, "ssl.ca.pem")
		cfg.KafkaConfig["ssl.ca.location"] = ca
	}
	other := filepath.Join(t.TempDir(), "other.pem")
	require.NoError(t, os.WriteFile(other, []byte(selfSigned(t).certificate), 0o600))
	mtls := neli.KafkaConfigMap{"bootstrap.servers": b.cluster.MTLSBootstrap(), "security.protocol": "SSL", "ssl.ca.location": ca}
	t.Run("served", func(t *testing.T) { t.Parallel(); testServed(t, b, program) })
	const wrong = "an0ther-s3cret"
	for what, tc := range map[string]struct {
		props neli.KafkaConfigMap
		says  string
	}{
		"SCRAM, wrong password":     {with(password.KafkaConfig, neli.KafkaConfigMap{"sasl.password": wrong}), "look at sasl.username and sasl.password"},
		"PLAIN, wrong password":     {with(plain.KafkaConfig, neli.KafkaConfigMap{"sasl.password": wrong}), "look at sasl.username and sasl.password"},
		"mechanism not taken":       {with(tokens.KafkaConfig, neli.KafkaConfigMap{"bootstrap.servers": b.cluster.SecureBootstrap(), "security.protocol": "SASL_SSL", "ssl.ca.location": ca}), "look at sasl.mechanism"},
		"CA of somebody else":       {with(password.KafkaConfig, neli.KafkaConfigMap{"ssl.ca.location": other}), "look at ssl.ca.location"},
		"no TLS":                    {with(without(password.KafkaConfig, "ssl."), neli.KafkaConfigMap{"security.protocol": "SASL_PLAINTEXT"}), "look at security.protocol: the broker wants TLS"},
		"no login":                  {with(without(password.KafkaConfig, "sasl."), neli.KafkaConfigMap{"security.protocol": "SSL"}), "look at security.protocol and sasl.mechanism"},
		"no client certificate":     {mtls, "look at ssl.certificate.location and ssl.key.location"},
		"wrong client secret":       {with(tokens.KafkaConfig, neli.KafkaConfigMap{"sasl.oauthbearer.client.secret": wrong}), "look at sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret"},
		"endpoint answers HTML":     {with(tokens.KafkaConfig, neli.KafkaConfigMap{"sasl.oauthbearer.token.endpoint.url": page.URL + "/token"}), "look at sasl.oauthbearer.token.endpoint.url"},
		"endpoint is down":          {with(tokens.KafkaConfig, neli.KafkaConfigMap{"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"}), "look at sasl.oauthbearer.token.endpoint.url"},
		"endpoint hangs":            {with(tokens.KafkaConfig, endpointOf(hanging.URL)), "look at sasl.oauthbearer.token.endpoint.url"},
		"endpoint's CA":             {with(tokens.KafkaConfig, endpointOf(endpoint.URL)), "look at https.ca.location"},
		"token without expiry":      {with(tokens.KafkaConfig, endpointOf(lasting.URL)), "look at sasl.oauthbearer.token.endpoint.url"},
		"token in the past":         {with(tokens.KafkaConfig, endpointOf(expired.URL)), "look at sasl.oauthbearer.token.endpoint.url"},
		"issuer that is not theirs": {with(tokens.KafkaConfig, neli.KafkaConfigMap{"sasl.oauthbearer.token.endpoint.url": newIssuer(t).URL + "/token"}), "look at sasl.oauthbearer.scope and sasl.oauthbearer.token.endpoint.url"},
		"unknown property":          {with(tokens.KafkaConfig, neli.KafkaConfigMap{"sasl.oauthbearer.klient.id": "somebody"}), "sasl.oauthbearer.klient.id"},
		"may read and not write":    {reads.KafkaConfig, "WRITE topic"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			topic := tokens.LeaderTopic
			switch {
			case what == "may read and not write":
				topic = reads.LeaderTopic
			case tc.props["sasl.username"] != nil:
				topic = password.LeaderTopic
			}
			code, said := runCheck(t, program, topic, tc.props)
			t.Log(said)
			assert.NotZero(t, code)
			lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(said), "\n"), func(line string) bool {
				return strings.HasPrefix(line, "broker: ") || strings.HasSuffix(line, ": invalid configuration:")
			})
			require.Len(t, lines, 1, "one sentence")
			assert.Contains(t, lines[0], tc.says)
			for _, secret := range []string{wrong, issuerSecret, hostilePassword, plainPassword, "eyJ", "s3cret-page"} {
				assert.NotContains(t, said, secret)
			}
		})
	}
}

// runCheck runs neli check with these properties, and returns its exit code and its output. If the broker refuses the
// topic, that ends the check at once. Otherwise a record must be refused within --for.
func runCheck(t *testing.T, program, topic string, props neli.KafkaConfigMap) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "check", "--group", "checked", "--topic", topic, "--config", propertiesFile(t, props), "--for", "15s")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	_ = cmd.Run() // the exit code is checked below
	return cmd.ProcessState.ExitCode(), said.String()
}

// propertiesFile writes a file for --config, and returns its path.
func propertiesFile(t *testing.T, props neli.KafkaConfigMap) string {
	t.Helper()
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(props)) {
		fmt.Fprintf(&lines, "%s=%v\n", name, props[name])
	}
	file := filepath.Join(t.TempDir(), "client.properties")
	require.NoError(t, os.WriteFile(file, []byte(lines.String()), 0o600))
	return file
}

// testServed checks that after a login by token, neli run --listen serves neither the token nor the secret behind it.
func testServed(t *testing.T, b *tokenBed, program string) {
	cfg, _ := b.member(t, "franz", nil, nil, hostileRights["open"]...)
	free, err := kafkatest.FreeAddrs(1) // no outgoing connection takes it meanwhile
	require.NoError(t, err)
	address := free[0]
	children, err := nursery.New("")
	require.NoError(t, err)
	t.Cleanup(children.Close)
	cmd := exec.Command(program, "run", "--group", cfg.LeaderGroupID, "--topic", cfg.LeaderTopic, "--config", propertiesFile(t, cfg.KafkaConfig),
		"--listen", address, "--log-level", "debug", "--", "sleep", "1000")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	process, err := children.Start(cmd)
	require.NoError(t, err)
	get := func(route string) string {
		answer, err := http.Get("http://" + address + route)
		if err != nil {
			return ""
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return string(body)
	}
	hostileUntil(t, time.Minute, func() bool { return strings.Contains(get("/leader"), `"leader":true`) }, "it leads")
	served := get("/metrics")
	assert.Contains(t, served, "neli_is_leader")
	served += get("/") + get("/stats") + get("/members") + get("/standings")
	require.NoError(t, process.Signal(syscall.SIGTERM))
	<-process.Done()
	for _, secret := range []string{issuerSecret, "eyJ"} {
		assert.NotContains(t, served, secret)
		assert.NotContains(t, said.String(), secret)
	}
}
