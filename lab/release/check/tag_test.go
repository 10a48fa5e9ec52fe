package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/exp/apidiff"

	"github.com/goneli/neli/lab/release/internal/repo"
	"github.com/goneli/neli/lab/release/internal/trial"
)

func checkout(t *testing.T) repo.Repo {
	t.Helper()
	return repo.Repo{Dir: trial.Checkout(t, nil)}
}

// rehearsed returns the release that check makes of a clone of r.
func rehearsed(t *testing.T, r repo.Repo, asked string) string {
	t.Helper()
	clone := repo.Repo{Dir: filepath.Join(t.TempDir(), "clone")}
	_, err := r.Git("clone", "--quiet", r.Dir, clone.Dir)
	require.NoError(t, err)
	is := &check{work: t.TempDir(), clone: clone}
	require.NoError(t, is.tag(asked))
	require.Len(t, is.modules, 4)
	return is.version
}

// A candidate's commit becomes the release without a change. The check rehearses the release, not the candidate.
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

func TestUnsaidNamesChangesThatTheChangelogOmits(t *testing.T) {
	report := apidiff.Report{Changes: []apidiff.Change{
		{Message: "Config.Grace: removed"},
		{Message: "(*Neli).Ask: changed from func() to func(int)"},
		{Message: "ErrNew: added", Compatible: true},
	}}
	require.Equal(t, []string{"Config.Grace: removed", "(*Neli).Ask: changed from func() to func(int)"}, unsaid(report, ""))
	require.Equal(t, []string{"(*Neli).Ask: changed from func() to func(int)"}, unsaid(report, "- `Config.Grace` is gone. Asking costs more."))
	require.Empty(t, unsaid(report, "- `Grace` is gone, `Ask` takes a number."))
}
