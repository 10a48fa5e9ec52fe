package migration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shown is a block of code below the name of its file.
var shown = regexp.MustCompile("(?ms)^\\[[a-z]+/\\w+\\.\\w+\\]\\(\\.\\./examples/migration/([a-z]+/\\w+\\.\\w+)\\):\n\n```(?:go|sh)\n(.*?)^```$")

// The page shows the code that is compiled and run here; for Go, everything after the imports.
func TestThePageShowsTheseFiles(t *testing.T) {
	page, err := os.ReadFile("../../docs/migration.md")
	require.NoError(t, err)
	var got []string
	for _, m := range shown.FindAllStringSubmatch(string(page), -1) {
		file, err := os.ReadFile(m[1])
		require.NoError(t, err)
		text := string(file)
		if filepath.Ext(m[1]) == ".go" {
			_, text, _ = strings.Cut(text, "\n)\n\n")
		}
		require.Equal(t, text, m[2], m[1])
		got = append(got, m[1])
	}
	var want []string
	for _, pattern := range []string{"*/before.*", "*/after.*", "*/lock.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		want = append(want, files...)
	}
	require.ElementsMatch(t, want, got)
}
