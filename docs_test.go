package neli_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// readmeLines is how long a README may be that is read in five minutes.
const readmeLines = 180

func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), readmeLines)
}

// TestReadmeExampleCompiles type-checks the first program of the README as users
// would paste it.
func TestReadmeExampleCompiles(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```go\npackage main\n")
	require.True(t, found, "README.md has no program")
	program, _, closed := strings.Cut(rest, "```")
	require.True(t, closed)
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte("package main\n"+program), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
)

// TestDocumentsLinkToWhatExists follows each relative link of each document to a
// file and, within documents, to a heading.
func TestDocumentsLinkToWhatExists(t *testing.T) {
	documents := markdown(t)
	require.Contains(t, documents, "README.md")
	for file, text := range documents {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue // not relative
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			_, err := os.Stat(path)
			require.NoErrorf(t, err, "%s links to %s", file, m[1])
			if anchor != "" {
				require.Containsf(t, anchors(documents[path]), anchor, "%s links to %s", file, m[1])
			}
		}
	}
}

var warning = regexp.MustCompile(`(?:[lL]og|[lL]ogger)\.(?:Warn|Error)\("([^"]+)"|slog\.Level(?:Warn|Error), "([^"]+)"`)

// TestRunbookNamesEveryWarning looks each line that the library and neli run log as a warning or an
// error up in the runbook: people look for it there, at three in the morning.
func TestRunbookNamesEveryWarning(t *testing.T) {
	operations, err := os.ReadFile("docs/operations.md")
	require.NoError(t, err)
	_, runbook, found := strings.Cut(string(operations), "## Runbook")
	require.True(t, found)
	lines := 0
	for _, pattern := range []string{"*.go", "internal/elector/*.go", "cmd/neli/internal/*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range warning.FindAllStringSubmatch(string(source), -1) {
				lines++
				require.Contains(t, runbook, m[1]+m[2], file)
			}
		}
	}
	require.Greater(t, lines, 15, "of those that there are")
}

// TestRunbookNamesEveryFatalError looks each error that ends a Neli up in the table of what
// to do then: each row has the error, its cause, and what to do.
func TestRunbookNamesEveryFatalError(t *testing.T) {
	source, err := os.ReadFile("errors.go")
	require.NoError(t, err)
	_, fatal, found := strings.Cut(string(source), "// Errors that end a Neli")
	require.True(t, found)
	fatal, _, found = strings.Cut(fatal, "\n)\n")
	require.True(t, found)
	operations, err := os.ReadFile("docs/operations.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(operations), "## Starting anew after a fatal end")
	require.True(t, found)
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^\t(Err\w+) += `).FindAllStringSubmatch(fatal, -1) {
		want = append(want, m[1])
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(Err\\w+)` \\| [^|]{5,} \\| [^|]{5,} \\|$").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	require.Greater(t, len(want), 5)
	require.ElementsMatch(t, want, got)
}

// markdown returns all documents of this repository by path, without their blocks of
// code, in which nothing is a link or a heading.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	documents := map[string]string{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		documents[path] = fence.ReplaceAllString(string(text), "")
		return err
	}))
	return documents
}

// anchors returns the names by which GitHub links to a document's headings: lower
// case, blanks as hyphens, punctuation left out.
func anchors(text string) []string {
	var names []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return names
}
