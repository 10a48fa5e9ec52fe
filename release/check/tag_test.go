package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/release/internal/repo"
)

// A candidate's commit becomes the release without a change. Not the candidate is rehearsed, but the release.
func TestTheReleaseThatIsAskedForIsRehearsed(t *testing.T) {
	r := repo.Repo{Dir: t.TempDir()}
	files := map[string]string{
		"go.work":      "go 1.26.0\n\nuse (\n\t.\n\t./peers\n)\n",
		"go.mod":       "module github.com/goneli/neli\n\ngo 1.26.0\n",
		"neli.go":      "package neli\n",
		"LICENSE":      "free\n",
		"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n- A line.\n",
		"peers/go.mod": "module github.com/goneli/neli/peers\n\ngo 1.26.0\n",
	}
	for _, of := range []string{"internal/lease", "internal/sentinel", "peers/internal/wire"} {
		files[of+"/records_test.go"] = "package " + filepath.Base(of) + "\n\nimport \"testing\"\n\nfunc TestRecordsOfReleases(t *testing.T) {}\n"
	}
	for name, text := range files {
		path := filepath.Join(r.Dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "a")
		t.Setenv("GIT_"+who+"_EMAIL", "a@localhost")
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", "all"}} {
		_, err := r.Git(args...)
		require.NoError(t, err)
	}
	require.NoError(t, r.Cut("v0.2.0-rc.1"))
	for _, c := range []struct{ asked, rehearsed string }{{"", "v0.2.0-rc.1"}, {"v0.2.0-rc.1", "v0.2.0-rc.1"}, {"v0.2.0", "v0.2.0"}} {
		clone := repo.Repo{Dir: filepath.Join(t.TempDir(), "clone")}
		_, err := r.Git("clone", "--quiet", r.Dir, clone.Dir)
		require.NoError(t, err)
		is := &check{work: t.TempDir(), clone: clone}
		require.NoError(t, is.tag(c.asked))
		require.Equal(t, c.rehearsed, is.version, "asked for %q", c.asked)
	}
}
