package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
)

// wide returns text in UTF-16, little-endian.
func wide(text string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(text)) {
		b.WriteByte(byte(u))
		b.WriteByte(byte(u >> 8))
	}
	return b.String()
}

const pemText = "-----BEGIN CERTIFICATE-----\nMIIDBzCC\nSSxqe4+m+b0bLE=\n-----END CERTIFICATE-----"

// Files written by other programs are read with the meaning that they have there, or refused with
// the line and what to write instead.
func TestFilesOfOtherPrograms(t *testing.T) {
	inLines := strings.ReplaceAll(pemText, "\n", `\n\`+"\n  ")
	for name, tc := range map[string]struct {
		text  string
		want  string // lines of name=value
		fault string
	}{
		"Windows":                     {"# made there\r\na.b=1\r\nc=2\r\n", "a.b=1\nc=2", ""},
		"old Mac":                     {"a=1\rb=2\r", "a=1\nb=2", ""},
		"byte-order mark":             {"\uFEFFa=1\r\n", "a=1", ""},
		"mark and comment":            {"\uFEFF# first\na=1", "a=1", ""},
		"Java's syntax":               {"! comment\na = 1,\\\n    2\nb : caf\\u00e9 \\ud83d\\ude00\n", "a=1,2\nb=café 😀", ""},
		"continued password":          {`p=abc\=def\:gh\\ij\#k`, `p=abc=def:gh\ij#k`, ""},
		"a backslash at the end":      {`p=abc\\` + "\nb=1", `p=abc\` + "\nb=1", ""},
		"equals signs":                {"jaas=x required a=\"b=c\";\nb==\nc=", "jaas=x required a=\"b=c\";\nb==\nc=", ""},
		"certificate in lines":        {"ca.pem=" + pemText + "\nb=1", "ca.pem=" + pemText + "\nb=1", ""},
		"certificates in lines":       {"ca.pem=" + pemText + "\n" + pemText + "\n# end\nb=1", "ca.pem=" + pemText + "\n" + pemText + "\nb=1", ""},
		"certificate by Java's rules": {"ca.pem=" + inLines + "\nb=1", "ca.pem=" + pemText + "\nb=1", ""},
		"certificate by escapes":      {"ca.pem=" + strings.ReplaceAll(pemText, "\n", `\n`), "ca.pem=" + pemText, ""},
		"the later one counts":        {"a=1\na=2", "a=1\na=2", ""},
		"Latin-1 in a comment":        {"# caf\xe9\na=1", "a=1", ""},
		"a domain of Windows":         {`u=DOMAIN\user`, "", `f:1: \u must be followed by four hexadecimal digits; a backslash is written \\`},
		"a tab for a backslash":       {`u=DOMAIN\tom`, "", `f:1: a backslash is written \\ (a single one begins an escape`},
		"half a character":            {`u=\ud83d`, "", `f:1: \u has half of a character`},
		"the last backslash":          {`a=1\`, "", `f:1: the file ends with a backslash`},
		"inline comment":              {"a=1   # the brokers", "", `f:1: "#" begins no comment behind a value`},
		"quotes":                      {"a=\"1\"\nb='2'", "", "f:1: the quotes would be part of the value: leave them out, or write \\\" if they belong to it\nf:2: the quotes"},
		"INI":                         {"[default]\na=1", "", "f:1: sections in brackets are not read: leave this line out"},
		"YAML":                        {"---\na: 1\nb:\n  - c", "", "f:1: this looks like YAML: write one name=value per line\nf:4: must be name=value"},
		"YAML without more":           {"a: 1\nb: TLS", "a=1\nb=TLS", ""},
		"JSON":                        {`{"a": "1"}`, "", "f: is JSON: write one name=value per line"},
		"Latin-1":                     {"a=1\nb=caf\xe9", "", "f:2: is not UTF-8: save the file as UTF-8"},
		"NUL":                         {"a=1\nb=\tx\n\x00\n", "", "f:3: has a NUL byte"},
		"UTF-16":                      {wide("\uFEFFa=1\r\n"), "", "f: is in UTF-16: save it as UTF-8"},
		"UTF-16 without mark":         {wide("a=1\r\n"), "", "f: is in UTF-16: save it as UTF-8"},
		"an invisible character":      {"\u200bsasl.username=hunter", "", "f:1: must be name=value; a name has only letters"},
		"a blank in a name":           {"export a=1", "", "f:1: must be name=value; a name has only letters"},
		"a placeholder":               {"a=${SECRET}", "", "f:1: ${…} is not replaced here: write the value itself"},
		"no separator":                {"a 1", "", "f:1: must be name=value"},
		"not a file of properties":    {strings.Repeat("x", mostProperties+1), "", "f: must be at most 1 MiB"},
		"nothing":                     {"\n \t\n#\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			props, err := parseProperties("f", []byte(tc.text))
			if tc.fault != "" {
				require.ErrorContains(t, err, tc.fault)
				require.NotContains(t, err.Error(), "hunter")
				return
			}
			require.NoError(t, err)
			var got []string
			for _, p := range props {
				got = append(got, p.name+"="+p.value)
			}
			require.Equal(t, tc.want, strings.Join(got, "\n"))
		})
	}
}

// refusal returns a verb's message about a file of properties that New refuses.
func refusal(t *testing.T, text string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "client.properties")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	var errs strings.Builder
	require.Equal(t, codeFailure, Main(append([]string{"status", "--group", "g", "--config", file}, args...), io.Discard, &errs))
	return strings.ReplaceAll(errs.String(), file, "FILE")
}

// The files that a cloud's console, Strimzi and AWS hand out for Java are refused line by line, with what to write instead.
func TestFilesForJavaAreRefusedLineByLine(t *testing.T) {
	require.Equal(t, `neli: FILE:4: sasl.jaas.config: is Java's: write sasl.username=… and sasl.password=… instead; with sasl.mechanism=AWS_MSK_IAM leave it out, and with OAUTHBEARER set sasl.oauthbearer.method=oidc and its properties
sasl.mechanism=PLAIN: needs sasl.username and sasl.password
`, strings.ReplaceAll(refusal(t, `# for Java
bootstrap.servers=127.0.0.1:1
security.protocol=SASL_SSL
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username='KEY' password='s3cr3t';
sasl.mechanism=PLAIN
client.dns.lookup=use_all_dns_ips
session.timeout.ms=45000
acks=all
schema.registry.url=https://registry.example.test
basic.auth.user.info=SRKEY:s3cr3tREG
`), "FILE:5: ", ""))
	said := refusal(t, "security.protocol=SSL\nssl.truststore.location=/t.p12\nssl.truststore.password=s3cr3t\nssl.keystore.location=/k.p12\ngroup.id=mine\nauto.offset.reset=earliest\n",
		"-X", "acks=1", "--bootstrap", "a:0")
	for _, line := range []string{
		"FILE:2: ssl.truststore.location: only PEM is read: write ssl.ca.location=ca.pem, made with openssl pkcs12",
		"FILE:3: ssl.truststore.password: belongs to ssl.truststore.location: leave it out",
		"FILE:4: ssl.keystore.location: only PEM is read: write ssl.certificate.location=client.pem",
		`FILE:5: group.id: "mine" is set by --group: leave it out`,
		`FILE:6: auto.offset.reset: "earliest" is set by the library, since a silent jump would void a lease: leave it out`,
		`-X acks: "1" is always all: a lease must survive a broker`,
		`--bootstrap: "a:0" must have a port from 1 to 65535`,
	} {
		require.Contains(t, said, line+"", said)
	}
	require.NotContains(t, said, "s3cr3t")
}

// No message to a user of the command names a function, a field or a type of Go, whatever name of Java's or
// librdkafka's vocabulary a file contains.
func TestMessagesDoNotMentionGo(t *testing.T) {
	var text strings.Builder
	for _, list := range []string{"librdkafka.txt", "java.txt"} {
		names, err := os.ReadFile(filepath.Join("../../../../franz/testdata", list))
		require.NoError(t, err)
		for name := range strings.FieldsSeq(string(names)) {
			text.WriteString(name + "=odd\n")
		}
	}
	said := refusal(t, text.String())
	require.Greater(t, strings.Count(said, "\n"), 100, said)
	require.NotRegexp(t, `kgo\.|franz|Config\b|LeaderGroupID|HeartbeatTimeout|in Go`, said)
	for line := range strings.Lines(strings.TrimPrefix(said, "neli: ")) {
		require.Regexp(t, `^(FILE:\d+: )?[a-z0-9._]+(:|=)`, line)
	}
	said = refusal(t, "security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n")
	require.Equal(t, "neli: FILE:2: sasl.mechanism=GSSAPI: must be PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER\n", said)
	require.NotRegexp(t, `kgo|Config`, refusal(t, "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"))
}

// A certificate can be given in the file, by -X, and by a variable. A private key is treated as a secret.
func TestCertificateCanBeAnArgument(t *testing.T) {
	cfg, err := resolved(t, "--group", "g", "-X", "ssl.ca.pem="+pemText, "-X", "ssl.certificate.pem="+pemText, "-X", "https.ca.pem="+pemText)
	require.NoError(t, err)
	require.Equal(t, neli.KafkaConfigMap{"bootstrap.servers": "localhost:9092", "ssl.ca.pem": pemText, "ssl.certificate.pem": pemText, "https.ca.pem": pemText}, cfg.KafkaConfig)
	_, err = resolved(t, "--group", "g", "-X", "ssl.key.pem=hunter2", "-X", "none")
	require.EqualError(t, err, "-X ssl.key.pem: arguments are public: put it into the file named by --config\n-X \"none\": must be name=value")
}

// With the property sasl.mechanism alone, the command logs in to Amazon MSK by IAM. Other
// mechanisms do not involve AWS.
func TestMSKByProperty(t *testing.T) {
	props := map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}
	for _, name := range []string{"sasl.mechanism", "sasl.mechanisms"} {
		p, err := provider(neli.KafkaConfigMap{name: "AWS_MSK_IAM"}).Producer(props, slog.New(slog.DiscardHandler))
		require.NoError(t, err, name)
		require.NoError(t, p.Close())
	}
	_, err := provider(neli.KafkaConfigMap{}).Producer(props, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "sasl.mechanism=AWS_MSK_IAM")
}

func TestRefusedLoginNamesItsProperty(t *testing.T) {
	refused := func(text string) error { return fmt.Errorf("%w: %s", kafka.ErrAuthentication, text) }
	for _, tc := range []struct {
		mechanism string
		err       error
		look      string
	}{
		{"PLAIN", refused("SASL_AUTHENTICATION_FAILED"), "look at sasl.username and sasl.password"},
		{"SCRAM-SHA-512", refused("UNSUPPORTED_SASL_MECHANISM: x"), "look at sasl.mechanism"},
		{"scram-sha-512", refused("tls: failed to verify certificate: x509: unknown authority"), "look at ssl.ca.location"},
		{"", refused("remote error: tls: certificate required"), "look at ssl.certificate.location and ssl.key.location"},
		{"OAUTHBEARER", refused("the broker refuses the token (invalid_token)"), "look at sasl.oauthbearer.scope"},
		{"AWS_MSK_IAM", refused("SASL_AUTHENTICATION_FAILED: Access denied"), "look at AWS's credentials"},
		{"PLAIN", errors.New("broker closed the connection: EOF"), "look at security.protocol and sasl.mechanism"},
		{"PLAIN", errors.New("is this a plaintext connection speaking to a tls endpoint?"), "look at security.protocol: the broker wants TLS"},
		{"OAUTHBEARER", refused("answers 401: look at sasl.oauthbearer.client.id"), "look at sasl.oauthbearer.client.id"},
		{"OAUTHBEARER", context.DeadlineExceeded, "look at sasl.oauthbearer.token.endpoint.url and bootstrap.servers: one of them does not answer"},
		{"PLAIN", context.DeadlineExceeded, "context deadline exceeded"},
		{"PLAIN", errors.New("connection refused"), "connection refused"},
	} {
		for _, name := range []string{"sasl.mechanism", "sasl.mechanisms"} {
			props := neli.KafkaConfigMap{name: tc.mechanism, "sasl.password": "hunter2"}
			err := explained(fmt.Errorf("cannot find the leader topic: %w", tc.err), props)
			require.ErrorIs(t, err, tc.err)
			require.Regexp(t, tc.look+"[^:]*(: (the broker|one of them) [a-z ]+)?$", err.Error())
			require.NotContains(t, withoutSecrets(fmt.Errorf("%w (hunter2)", tc.err), props), "hunter2")
		}
	}
}
