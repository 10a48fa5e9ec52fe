// Package trial makes a small repository on which tests make releases.
package trial

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Checkout makes a repository with a library, a module that requires it, one that requires nothing, one of examples and
// one that is not published. files replace those of the same name. It returns the directory.
func Checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{
		"go.work":         "go 1.26.0\n\nuse (\n\t./franz\n\t./peers\n\t./examples\n\t./lab\n\t.\n)\n\nreplace github.com/goneli/neli v0.1.0 => ./\n",
		"go.mod":          "module github.com/goneli/neli\n\ngo 1.26.0\n",
		"neli.go":         "package neli\n",
		"LICENSE":         "free\n",
		"CHANGELOG.md":    "# Changelog\n\n## [Unreleased]\n\n- A line.\n",
		"franz/go.mod":    "module github.com/goneli/neli/franz\n\ngo 1.26.0\n\nrequire github.com/goneli/neli v0.1.0\n",
		"franz/franz.go":  "package franz\n\nimport _ \"github.com/goneli/neli\"\n",
		"examples/go.mod": "module github.com/goneli/neli/examples\n\ngo 1.26.0\n",
		"examples/doc.go": "package examples\n",
		"lab/go.mod":      "module github.com/goneli/neli/lab\n\ngo 1.26.0\n\nrequire github.com/goneli/neli v0.1.0\n",
		"lab/lab.go":      "package lab\n",
		"peers/go.mod":    "module github.com/goneli/neli/peers\n\ngo 1.26.0\n",
		"peers/peers.go":  "package peers\n",
	}
	// Replacements for the library's own tests.
	for _, of := range []string{"internal/lease", "internal/sentinel", "peers/internal/wire"} {
		all[of+"/records_test.go"] = "package " + filepath.Base(of) + "\n\nimport \"testing\"\n\nfunc TestRecordsOfReleases(t *testing.T) {}\n"
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "a")
		t.Setenv("GIT_"+who+"_EMAIL", "a@localhost")
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", "all"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return dir
}
