package lease

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// releases has a file for each release that writes other records than the one before. The lines
// come in pairs: a record as that release writes it, and its meaning. The file of a published
// release never changes. `make release` adds one.
const releases = "testdata/releases"

// Members of all releases contend in one group, so each release must read the records of earlier
// ones, with the same meaning.
func TestRecordsOfReleases(t *testing.T) {
	if release := os.Getenv("NELI_RELEASE"); release != "" {
		addRelease(t, release)
	}
	files, err := filepath.Glob(filepath.Join(releases, "*.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		lines := linesOf(t, file)
		require.Zero(t, len(lines)%2, file)
		for pair := range slices.Chunk(lines, 2) {
			var want Record
			require.NoError(t, json.Unmarshal(pair[1], &want), "%s: %s", file, pair[1])
			got, err := testCodec.Decode(pair[0])
			require.NoError(t, err, "%s: %s", file, pair[0])
			require.Equal(t, &want, got, "%s: %s", file, pair[0])
		}
	}
}

// A record that no release has written is new to every deployed member, so a change must not go
// unnoticed. NELI_RELEASE names the coming release and adds a file.
func TestRecordsAreThoseOfARelease(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(releases, "*.jsonl"))
	require.NoError(t, err)
	var known [][]byte
	for _, file := range files {
		known = append(known, linesOf(t, file)...)
	}
	for _, r := range examples() {
		value := testCodec.Encode(&r)
		require.True(t, slices.ContainsFunc(known, func(line []byte) bool { return bytes.Equal(line, value) }),
			"no file in %s has %s: read in docs/compatibility.md how old readers treat new records; then run NELI_RELEASE=vX.Y.Z go test -run TestRecordsOfReleases", releases, value)
	}
}

// addRelease writes the file of a release, unless the files of earlier ones have all its records.
func addRelease(t *testing.T, release string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(releases, "*.jsonl"))
	require.NoError(t, err)
	path := filepath.Join(releases, release+".jsonl")
	var known [][]byte
	for _, file := range files {
		if file != path {
			known = append(known, linesOf(t, file)...)
		}
	}
	var b bytes.Buffer
	for _, r := range examples() {
		value := testCodec.Encode(&r)
		if slices.ContainsFunc(known, func(line []byte) bool { return bytes.Equal(line, value) }) {
			continue
		}
		read, err := testCodec.Decode(value)
		require.NoError(t, err)
		meant, err := json.Marshal(read)
		require.NoError(t, err)
		b.Write(append(append(append(value, '\n'), meant...), '\n'))
	}
	if b.Len() == 0 {
		return
	}
	require.NoError(t, os.MkdirAll(releases, 0o755))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
}

func linesOf(t *testing.T, file string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return bytes.Split(bytes.TrimSpace(b), []byte("\n"))
}
