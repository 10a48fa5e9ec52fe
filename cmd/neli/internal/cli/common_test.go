package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

// resolved returns the configuration that arguments give.
func resolved(t *testing.T, args ...string) (neli.Config, error) {
	t.Helper()
	root := newRoot()
	cmd, rest, err := root.Find([]string{"status"})
	require.NoError(t, err)
	require.Empty(t, rest)
	var c common
	c.register(cmd.Flags())
	if err := cmd.Flags().Parse(args); err != nil {
		return neli.Config{}, err
	}
	if err := fromEnvironment(cmd.Flags()); err != nil {
		return neli.Config{}, err
	}
	return c.resolve(cmd)
}

// Arguments win over the environment, and both over the file. Only the file may have secrets.
func TestConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "client.properties")
	require.NoError(t, os.WriteFile(file, []byte("# ours\nbootstrap.servers = file:1\n\nsasl.password=a=b\nclient.id=file\n"), 0o600))
	t.Setenv("NELI_GROUP", "environment")
	t.Setenv("NELI_TIMEOUT", "7s")
	cfg, err := resolved(t, "--config", file, "-X", "client.id=argument", "--timeout", "8s")
	require.NoError(t, err)
	require.Equal(t, "environment", cfg.LeaderGroupID)
	require.Equal(t, "environment.neli", cfg.LeaderTopic)
	require.Equal(t, 8*time.Second, cfg.HeartbeatTimeout)
	require.Equal(t, neli.KafkaConfigMap{"bootstrap.servers": "file:1", "sasl.password": "a=b", "client.id": "argument"}, cfg.KafkaConfig)

	t.Setenv("NELI_BOOTSTRAP", "environment:1")
	cfg, err = resolved(t, "--config", file)
	require.NoError(t, err)
	require.Equal(t, "environment:1", cfg.KafkaConfig["bootstrap.servers"])
	cfg, err = resolved(t, "--config", file, "-X", "client.id=argument")
	require.NoError(t, err)
	require.Equal(t, "environment:1", cfg.KafkaConfig["bootstrap.servers"], "-X names no brokers")
}

// An argument wins over the environment, whichever of the two flags names the brokers. Of two arguments or
// two variables, --bootstrap wins.
func TestBrokersByArgumentOrEnvironment(t *testing.T) {
	for _, tc := range []struct {
		want        string
		environment map[string]string
		args        []string
	}{
		{"property:1", map[string]string{"NELI_BOOTSTRAP": "environment:1"}, []string{"-X", "bootstrap.servers=property:1"}},
		{"property:1", map[string]string{"NELI_BOOTSTRAP": "environment:1"}, []string{"-X", "metadata.broker.list=property:1"}},
		{"argument:1", map[string]string{"NELI_BOOTSTRAP": "environment:1"}, []string{"-X", "bootstrap.servers=property:1", "--bootstrap", "argument:1"}},
		{"argument:1", map[string]string{"NELI_PROPERTY": "bootstrap.servers=environment:1"}, []string{"--bootstrap", "argument:1"}},
		{"environment:1", map[string]string{"NELI_BOOTSTRAP": "environment:1", "NELI_PROPERTY": "bootstrap.servers=property:1"}, nil},
		{"environment:1", map[string]string{"NELI_PROPERTY": "bootstrap.servers=environment:1"}, nil},
	} {
		t.Run("", func(t *testing.T) {
			for name, value := range tc.environment {
				t.Setenv(name, value)
			}
			cfg, err := resolved(t, append(tc.args, "--group", "g")...)
			require.NoError(t, err)
			require.Equal(t, tc.want, cfg.KafkaConfig["bootstrap.servers"], "%v %v", tc.environment, tc.args)
		})
	}
}

// The file may name the brokers by librdkafka's other property. Then an argument overrides it, but the
// default of --bootstrap does not.
func TestBrokersByTheirOtherProperty(t *testing.T) {
	file := filepath.Join(t.TempDir(), "client.properties")
	require.NoError(t, os.WriteFile(file, []byte("metadata.broker.list=file:1\n"), 0o600))
	for want, args := range map[string][]string{
		"file:1":     nil,
		"property:1": {"-X", "bootstrap.servers=property:1"},
		"argument:1": {"--bootstrap", "argument:1"},
	} {
		cfg, err := resolved(t, append(args, "--group", "g", "--config", file)...)
		require.NoError(t, err)
		require.Equal(t, neli.KafkaConfigMap{"bootstrap.servers": want}, cfg.KafkaConfig)
	}
	require.NoError(t, os.WriteFile(file, []byte("bootstrap.servers=file:1\n"), 0o600))
	cfg, err := resolved(t, "-X", "metadata.broker.list=property:1", "--group", "g", "--config", file)
	require.NoError(t, err)
	require.Equal(t, neli.KafkaConfigMap{"bootstrap.servers": "property:1"}, cfg.KafkaConfig, "an argument wins over the file")
}

// Bad values of a verb's own flags are refused by the flag's name, with the value and the rule.
func TestBadFlagsOfVerbs(t *testing.T) {
	for want, args := range map[string][]string{
		"--slots 2000000: must be from 1 to 1000000, and be given with --key": {"transfer", "--key", "k", "--slots", "2000000", "host7"},
		"--slots 0: must be from 1 to 1000000, and be given with --key":       {"step-down", "--key", "k"},
		"--slots 7: needs --key":                             {"step-down", "--slots", "7"},
		`--roles: "abc" must be a whole number`:              {"status", "--roles", "abc"},
		`--json: "perhaps" must be true or false`:            {"status", "--json=perhaps"},
		`--for: "5" must be a duration, such as 5s or 500ms`: {"check", "--for", "5"},
	} {
		var errs strings.Builder
		require.Equal(t, codeFailure, Main(append(args, "--group", "g"), io.Discard, &errs))
		require.Equal(t, "neli: "+want+"\n", errs.String())
	}
}

// Every command has the flag --help, which is not read from the environment.
func TestHelpIsNotReadFromTheEnvironment(t *testing.T) {
	t.Setenv("NELI_HELP", "x")
	var out, errs bytes.Buffer
	require.Zero(t, Main([]string{"version"}, &out, &errs), &errs)
	require.NotContains(t, out.String(), "Usage")
}

func TestBadConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "client.properties")
	require.NoError(t, os.WriteFile(file, []byte("a=b\nsasl.password hunter2\n"), 0o600))
	for want, args := range map[string][]string{
		"--group (or NELI_GROUP) is missing":        {},
		"client.properties:2: must be name=value":   {"--group", "g", "--config", file},
		"-X sasl.password: arguments are public":    {"--group", "g", "-X", "sasl.password=hunter2"},
		"-X ssl.key.pem: arguments are public":      {"--group", "g", "-X", "ssl.key.pem=hunter2"},
		`-X "hunter": must be name=value`:           {"--group", "g", "-X", "hunter"},
		`--log-level: "loud" must be debug, info`:   {"--group", "g", "--log-level", "loud"},
		`invalid argument "x" for "--timeout" flag`: {"--group", "g", "--timeout", "x"},
		"--timeout 0s: must be from 100ms to 60s":   {"--group", "g", "--timeout", "0s"},
		`--group: "a b" must be`:                    {"--group", "a b"},
		"no such file or directory":                 {"--group", "g", "--config", file + ".none"},
	} {
		_, err := resolved(t, args...)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
	t.Setenv("NELI_TIMEOUT", "x")
	_, err := resolved(t, "--group", "g")
	require.ErrorContains(t, err, "NELI_TIMEOUT: ")
}

// Inside a command of neli run or neli watch --exec, the variables that the outer neli set do not count as flags.
func TestVariablesOfAnOuterRunAreNoFlags(t *testing.T) {
	t.Run("status in a program of watch", func(t *testing.T) {
		for _, v := range changed(neli.Standing{Status: neli.StatusHeld, Holder: neli.Holder{Token: 1}}, "jobs") {
			name, value, _ := strings.Cut(v, "=")
			t.Setenv(name, value)
		}
		t.Setenv("NELI_ROLES", "0-3")
		var errs strings.Builder
		require.Equal(t, codeFailure, Main([]string{"status"}, io.Discard, &errs))
		require.NotContains(t, errs.String(), "NELI_ROLES")
		require.Contains(t, errs.String(), `--group is missing: NELI_GROUP does not count inside neli run and neli watch --exec; use --group "$NELI_GROUP"`)
	})
	for _, name := range told {
		t.Setenv(name, "outer")
	}
	t.Setenv("NELI_ROLES", "4")
	cfg, err := resolved(t)
	require.NoError(t, err)
	require.Equal(t, "outer", cfg.LeaderGroupID)
	t.Setenv("NELI_TOKEN", "17")
	_, err = resolved(t)
	require.ErrorContains(t, err, "--group")
	cfg, err = resolved(t, "--group", "inner")
	require.NoError(t, err)
	require.Equal(t, []string{"inner", "inner.neli", ""}, []string{cfg.LeaderGroupID, cfg.LeaderTopic, cfg.Name})
}

func TestPrintable(t *testing.T) {
	require.Equal(t, "10.0.0.7:80 ü", printable("10.0.0.7:80 ü"))
	for _, name := range []string{"\x1b[2J", "a\nb", "a\u202eb", "\xff"} {
		require.True(t, strings.HasPrefix(printable(name), `"`), name)
	}
}

// Names and ids of other members cannot move the terminal's cursor, and do not keep --exec from running its program.
func TestHostileNames(t *testing.T) {
	const hostile = "\x1b[2J\x00\u202e\n"
	holder := neli.Holder{Name: hostile, Member: hostile, Token: 17}
	s := neli.Standing{Status: neli.StatusHeld, Holder: holder}
	var out strings.Builder
	require.NoError(t, show(&out, report{standings: []neli.Standing{s}, members: []neli.Member{{Name: hostile, ID: hostile, Zone: hostile, Advertise: hostile}}}, false))
	require.NoError(t, tell(&out, s, false))
	require.NotContains(t, out.String(), "\x1b")
	require.NotContains(t, out.String(), "\u202e")
	require.Equal(t, 6, strings.Count(out.String(), `"\x1b[2J\x00\u202e\n"`), out.String())

	env := changed(s, "jobs")
	require.Contains(t, env, "NELI_MEMBER=\x1b[2J\u202e\n")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), env...)
	require.NoError(t, cmd.Run())
}

// A line for people is cut after some ranges of roles. A program of --exec gets them all, as far as an
// environment variable can hold them.
func TestProgramsGetAllRoles(t *testing.T) {
	scattered := func(n int) (s neli.Standing, roles string) {
		var pairs []string
		for i := range n {
			pairs = append(pairs, fmt.Sprintf("%d-%d", 900_000+3*i, 900_001+3*i))
		}
		roles = strings.Join(pairs, ",")
		require.NoError(t, json.Unmarshal([]byte(`{"status":"vacant","roles":"`+roles+`"}`), &s))
		return s, roles
	}
	s, roles := scattered(100)
	require.Contains(t, changed(s, "jobs"), "NELI_ROLES="+roles)
	var out strings.Builder
	require.NoError(t, tell(&out, s, false))
	require.Contains(t, out.String(), ",900057-900058,… vacant")

	s, _ = scattered(9000)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), changed(s, "jobs")...)
	require.NoError(t, cmd.Run())
}

// If no broker is reached, the command prints the Kafka client's error without secrets, and what a
// closed connection may mean.
func TestErrorOfAnUnreachedBrokerHasNoSecrets(t *testing.T) {
	props := neli.KafkaConfigMap{"sasl.password": "hunter2", "sasl.username": "reader"}
	require.Equal(t, "reader: [redacted] refused", withoutSecrets(errors.New("reader: hunter2 refused"), props))
	require.Equal(t, "deadline (EOF): look at security.protocol and sasl.mechanism, since a broker that closes the connection may want TLS or other credentials",
		withoutSecrets(errors.New("deadline (EOF)"), props))
}

// The command prints its prefix once, however often the library added its own, and names flags in
// place of fields of Config.
func TestTidy(t *testing.T) {
	for text, want := range map[string]string{
		`neli: Ask: role 0 to "x": neli: the request was refused: no`:                     `role 0 to "x": the request was refused: no`,
		"neli: invalid configuration:\nHeartbeatTimeout: \"1ms\" must\nRoles: \"0\" must": "--timeout: \"1ms\" must\n--roles: \"0\" must",
		`cannot describe topic jobs.neli: neli: access refused`:                           `cannot describe topic jobs.neli: access refused`,
		"topic x is missing": "topic x is missing",
	} {
		require.Equal(t, want, tidy(text))
	}
}

// docs/cli.md equals the command's help. NELI_UPDATE=1 writes it.
func TestReference(t *testing.T) {
	const file = "../../../../docs/cli.md"
	var b strings.Builder
	require.NoError(t, Reference(&b))
	if os.Getenv("NELI_UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(text), b.String(), "make generate")
}
