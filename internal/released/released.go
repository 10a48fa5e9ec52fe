// Package released compares the messages that this version sends with those that each release has
// sent. Only tests import it.
package released

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dir has a file for each release with messages that no earlier one had: just these. Each
// line is a name, a tab and a message. The file of a published release never changes; `make
// release` adds one.
const dir = "testdata/releases"

// Messages calls read with each message of each release. It fails the test if this version writes
// a message that no file has, since every deployed process would have to read it. now has this
// version's messages by name. NELI_RELEASE names the coming release and adds its file.
func Messages(t *testing.T, now map[string]string, read func(t *testing.T, name, message string)) {
	t.Helper()
	if release := os.Getenv("NELI_RELEASE"); release != "" {
		add(t, filepath.Join(dir, release+".txt"), now)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	known := map[string]bool{}
	for _, file := range files {
		for name, message := range messages(t, file) {
			known[name+message] = true
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+name, func(t *testing.T) { read(t, name, message) })
		}
	}
	for name, message := range now {
		require.True(t, known[name+message], "no file in %s has %s: %s; docs/compatibility.md says what may change; then NELI_RELEASE=vX.Y.Z go test -run %s",
			dir, name, message, t.Name())
	}
}

// add writes the messages of a release that no other file has, if there are any.
func add(t *testing.T, file string, now map[string]string) {
	t.Helper()
	others, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	require.NoError(t, err)
	fresh := maps.Clone(now)
	for _, other := range others {
		if other == file {
			continue
		}
		for name, message := range messages(t, other) {
			if fresh[name] == message {
				delete(fresh, name)
			}
		}
	}
	if len(fresh) == 0 {
		return
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fresh)) {
		fmt.Fprintf(&text, "%s\t%s\n", name, fresh[name])
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
}

// messages returns the messages of a file.
func messages(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, message, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		require.True(t, ok, "%s: %s", file, line)
		all[name] = message
	}
	return all
}
