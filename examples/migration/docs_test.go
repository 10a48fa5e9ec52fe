package migration

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var linked = regexp.MustCompile(`\]\(\.\./examples/migration/([a-z]+/\w+\.\w+)\)`)

func TestThePageLinksToTheseFiles(t *testing.T) {
	page, err := os.ReadFile("../../docs/migration.md")
	require.NoError(t, err)
	var want, got []string
	for _, pattern := range []string{"*/before.*", "*/after.*", "*/lock.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		want = append(want, files...)
	}
	for _, m := range linked.FindAllStringSubmatch(string(page), -1) {
		got = append(got, m[1])
	}
	require.ElementsMatch(t, want, got)
}
