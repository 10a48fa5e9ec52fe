package kafkatest

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is a testing.TB that only records how the test ends.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Name() string { return "TestThat" }

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// record runs f like a test.
func record(f func(testing.TB)) *recorder {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

func TestNotForeign(t *testing.T) {
	t.Setenv(EnvRequire, "")
	r := record(NotForeign)
	assert.Contains(t, r.skipped, "env -u NELI_BOOTSTRAP go test -run '^TestThat$'", "it says how to run the test")
	assert.Empty(t, r.failed)

	t.Setenv(EnvRequire, "1")
	r = record(NotForeign)
	assert.Empty(t, r.skipped, "impossible where Kafka is required")
	assert.Contains(t, r.failed, "needs brokers or proxies of its own")
}

func TestRequire(t *testing.T) {
	bare(t)

	r := record(Require)
	assert.Contains(t, r.skipped, "java is missing")
	assert.Contains(t, r.skipped, "install Java 17 or newer")

	t.Setenv(EnvRequire, "1")
	r = record(Require)
	assert.Contains(t, r.failed, "NELI_REQUIRE_KAFKA=1, but Kafka cannot run")

	t.Setenv(EnvBootstrap, "elsewhere:9092")
	assert.Equal(t, &recorder{}, record(Require))
	record(func(tb testing.TB) { assert.Equal(t, "elsewhere:9092", Bootstrap(tb)) })
	r = record(func(tb testing.TB) { Run(tb, Options{}) })
	assert.Contains(t, r.failed, "java is missing", "a foreign Kafka does not do for Run")
}

// The jars of one version do not make another one run.
func TestRunRequiresItsOwnVersion(t *testing.T) {
	bare(t)
	fakeJava(t, "")
	dir, err := jarDir(KafkaVersion)
	require.NoError(t, err)
	require.NoError(t, fill(t.Context(), dir, func(context.Context, string) error { return nil }, quiet))
	r := record(func(tb testing.TB) { requireOwn(tb, KafkaVersion) })
	require.Empty(t, r.skipped)
	r = record(func(tb testing.TB) { Run(tb, Options{Version: "3.9.2"}) })
	assert.Contains(t, r.skipped, filepath.Join("neli-kafka", "3.9.2")+" has no jars yet")
	assert.Empty(t, r.failed)
}

func TestOptionsAreCheckedTogether(t *testing.T) {
	_, err := Options{Brokers: 2, ProxiedListeners: -1}.withDefaults()
	assert.ErrorContains(t, err, "Brokers is 2, must be 1 or 3")
	assert.ErrorContains(t, err, "ProxiedListeners is -1")

	_, err = Options{Brokers: 3, Hosts: make([]Host, 2), ProxiedListeners: 1}.withDefaults()
	assert.ErrorContains(t, err, "2 Hosts, must be as many as Brokers, 3")
	assert.ErrorContains(t, err, "ProxiedListeners is 1, must be 0 with Hosts")

	_, err = Options{Brokers: 3, Port: 65534}.withDefaults()
	assert.ErrorContains(t, err, "Port is 65534, must be from 0 to 65533")
	_, err = Options{Brokers: 3, Port: 65533}.withDefaults()
	assert.NoError(t, err)
}

// A version becomes a part of paths, which are removed if they are incomplete.
func TestVersionsAreChecked(t *testing.T) {
	for _, version := range []string{"4.3", "v4.3.1", "latest", "../../4.3.1", "4.3.1/..", "4.3.1</version>"} {
		_, err := Options{Version: version}.withDefaults()
		assert.ErrorContains(t, err, "Version is \""+version+"\", must be like "+KafkaVersion)
	}
	for _, version := range []string{"2.8.2", "4.3.1", "4.10.0"} {
		_, err := Options{Version: version}.withDefaults()
		assert.NoError(t, err)
	}
	_, err := Options{Version: "2.8.2", Secure: true}.withDefaults()
	assert.ErrorContains(t, err, "Version is 2.8.2, must be 3.5 or later with Secure")
	for _, version := range []string{"3.5.0", "3.10.0", "4.0.0"} {
		_, err := Options{Version: version, Secure: true}.withDefaults()
		assert.NoError(t, err)
	}
	_, err = Options{Version: "4.0.2", ZooKeeper: true}.withDefaults()
	assert.ErrorContains(t, err, "Version is 4.0.2, must be below 4 with ZooKeeper")
}
