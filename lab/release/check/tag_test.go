package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/release/internal/repo"
)

// checkout makes a repository of two modules.
func checkout(t *testing.T) repo.Repo {
	t.Helper()
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
	return r
}

// rehearsed returns the release that check makes of a clone of r.
func rehearsed(t *testing.T, r repo.Repo, asked string) string {
	t.Helper()
	clone := repo.Repo{Dir: filepath.Join(t.TempDir(), "clone")}
	_, err := r.Git("clone", "--quiet", r.Dir, clone.Dir)
	require.NoError(t, err)
	is := &check{work: t.TempDir(), clone: clone}
	require.NoError(t, is.tag(asked))
	require.Len(t, is.modules, 2)
	return is.version
}

// A candidate's commit becomes the release without a change. The check rehearses the release, not
// the candidate.
func TestTheReleaseThatIsAskedForIsRehearsed(t *testing.T) {
	r := checkout(t)
	require.NoError(t, r.Cut("v0.2.0-rc.1"))
	for _, c := range []struct{ asked, rehearsed string }{{"", "v0.2.0-rc.1"}, {"v0.2.0-rc.1", "v0.2.0-rc.1"}, {"v0.2.0", "v0.2.0"}} {
		require.Equal(t, c.rehearsed, rehearsed(t, r, c.asked), "asked for %q", c.asked)
	}
}

// CI checks the commit as soon as it is pushed, with the tags of all modules but the root's.
func TestTheReleaseIsKnownBeforeItsLastTagIsPushed(t *testing.T) {
	r := checkout(t)
	require.NoError(t, r.Cut("v0.1.0"))
	_, err := r.Git("tag", "--delete", "v0.1.0")
	require.NoError(t, err)
	require.Equal(t, "v0.1.0", rehearsed(t, r, ""))
}

func TestTagsThatAreNoVersionsAreIgnored(t *testing.T) {
	r := checkout(t)
	_, err := r.Git("tag", "vendored")
	require.NoError(t, err)
	require.Equal(t, "v0.1.0", rehearsed(t, r, ""))
}
