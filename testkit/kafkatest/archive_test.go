package kafkatest

import (
	"path/filepath"
	"testing"

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
