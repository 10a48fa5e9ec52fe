package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var listed = regexp.MustCompile(`(?m)^//\t([a-z-]+) `)

// The package comment lists each program.
func TestPackageCommentListsEachProgram(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var got []string
	for _, m := range listed.FindAllStringSubmatch(string(text), -1) {
		got = append(got, m[1])
	}
	programs, err := filepath.Glob("*/main.go")
	require.NoError(t, err)
	var want []string
	for _, file := range programs {
		want = append(want, filepath.Dir(file))
	}
	require.ElementsMatch(t, want, got)
}

// A program may take long to close. Then the user wants to end it by a second Ctrl-C, so no program may go on catching it.
func TestEachProgramIsEndedByASecondInterrupt(t *testing.T) {
	programs, err := filepath.Glob("*/main.go")
	require.NoError(t, err)
	for _, file := range append(programs, "../lab/internal/show/show.go", "../README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Regexp(t, `ctx, stop := signal\.NotifyContext\(.*\n(\tdefer stop\(\)\n)?\tcontext\.AfterFunc\(ctx, stop\)`, string(text), file)
	}
}
