package migration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	linked = regexp.MustCompile(`\]\(\.\./examples/migration/([a-z]+/\w+\.\w+)\)`)
	// shown is a block of code below the name of its file.
	shown = regexp.MustCompile("(?ms)\\[[a-z]+/\\w+\\.\\w+\\]\\(\\.\\./examples/migration/([a-z]+/\\w+\\.go)\\):\n\n```go\n(.*?)^```$")
)

// TestThePageShowsTheseFiles: the page links to each program, and shows two as they are compiled and run here, without
// their imports.
func TestThePageShowsTheseFiles(t *testing.T) {
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
	blocks := shown.FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 2)
	for _, m := range blocks {
		file, err := os.ReadFile(m[1])
		require.NoError(t, err)
		_, text, _ := strings.Cut(string(file), "\n)\n\n")
		require.Equal(t, text, m[2], m[1])
	}
}
