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
func TestTheListOfPrograms(t *testing.T) {
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
