package kafkatest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Kafka's classes come from the archive that the first start has made.
func TestClassesComeFromTheArchive(t *testing.T) {
	c := Run(t, Options{})
	require.FileExists(t, filepath.Join(c.jars, archiveName))
	out, err := c.java("-Xlog:class+load", "kafka.Kafka", "--version").Output()
	require.NoError(t, err)
	require.Regexp(t, `kafka\.Kafka source: shared objects file`, string(out))
}

// If interrupted tries counted, a first start that was interrupted or killed would make all later
// ones slow.
func TestAnInterruptedArchiveIsTriedAgain(t *testing.T) {
	java := fakeJava(t, "exec sleep 600")
	jars := filepath.Join(t.TempDir(), KafkaVersion)
	require.NoError(t, os.Mkdir(jars, 0o755))
	tried := filepath.Join(jars, "archived")
	ctx, cancel := context.WithCancel(t.Context())
	early := false
	time.AfterFunc(500*time.Millisecond, func() {
		early = exists(tried)
		cancel()
	})
	require.ErrorIs(t, archiveClasses(ctx, jars, java, quiet), context.Canceled)
	require.False(t, early, "a process that is killed now leaves the mark behind")
	require.NoFileExists(t, tried)

	ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, archiveClasses(ctx, jars, java, quiet), context.DeadlineExceeded)
	require.FileExists(t, tried, "a start with as little time would fail again")
}
