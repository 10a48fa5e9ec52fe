package kafkatest

import (
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Environment variables that control the suite.
const (
	// EnvBootstrap names a running Kafka to use, as host:port,….
	EnvBootstrap = "NELI_BOOTSTRAP"
	// EnvRequire set to 1 makes tests fail, instead of being skipped, if Kafka cannot run.
	EnvRequire = "NELI_REQUIRE_KAFKA"
)

// Require skips the test unless there is a Kafka: one that can be started here ([Find]), or the one that
// NELI_BOOTSTRAP names. With NELI_REQUIRE_KAFKA=1 it fails the test instead.
func Require(t testing.TB) {
	t.Helper()
	if os.Getenv(EnvBootstrap) == "" {
		requireOwn(t, KafkaVersion)
	}
}

// requireOwn is Require for tests that need a Kafka of their own, of that version.
func requireOwn(t testing.TB, version string) {
	t.Helper()
	switch err := find(version); {
	case err == nil:
	case os.Getenv(EnvRequire) == "1":
		t.Fatalf("%s=1, but Kafka cannot run: %v", EnvRequire, err)
	default:
		t.Skipf("Kafka cannot run: %v\n%s=1 makes this a failure.", err, EnvRequire)
	}
}

// NotForeign skips a test that would disturb the Kafka that NELI_BOOTSTRAP names.
// With NELI_REQUIRE_KAFKA=1 it fails the test instead.
func NotForeign(t testing.TB) {
	t.Helper()
	skip := t.Skipf
	if os.Getenv(EnvRequire) == "1" {
		skip = t.Fatalf
	}
	skip("needs brokers or proxies of its own, to disturb them: run it without %s, as in\n\tenv -u %s go test -run '^%s$' .",
		EnvBootstrap, EnvBootstrap, t.Name())
}

// Bootstrap returns the address of a Kafka for the test: the one that NELI_BOOTSTRAP names, or that of a cluster
// of one broker with stock settings, which [Run] starts. The former may have topics and groups of others, so use
// unique names.
func Bootstrap(t testing.TB) string {
	t.Helper()
	if addr := os.Getenv(EnvBootstrap); addr != "" {
		return addr
	}
	return Run(t, Options{}).Bootstrap()
}

// Run starts a cluster for the test and stops it when the test ends. A failed
// test's broker logs are kept in logs/NAME-OF-THE-TEST below the directory of the
// test's package. Run skips or fails the test like [Require]; it never uses
// NELI_BOOTSTRAP, since a foreign broker must not be killed. Options.Log defaults
// to the test's own log.
func Run(t testing.TB, opts Options) *Cluster {
	t.Helper()
	requireOwn(t, cmp.Or(opts.Version, KafkaVersion))
	if opts.Log == nil {
		opts.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	cluster, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer cluster.Stop()
		if !t.Failed() {
			return
		}
		dir := filepath.Join("logs", strings.NewReplacer("/", "-", " ", "_").Replace(t.Name()))
		if err := cluster.KeepLogs(dir); err != nil {
			t.Log(err)
			return
		}
		t.Logf("the brokers' logs are in %s", dir)
	})
	return cluster
}
