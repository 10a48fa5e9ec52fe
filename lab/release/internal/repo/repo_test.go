package repo

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/release/internal/trial"
)

func checkout(t *testing.T, files map[string]string) Repo {
	t.Helper()
	return Repo{trial.Checkout(t, files)}
}

func TestCut(t *testing.T) {
	r := checkout(t, nil)
	require.NoError(t, r.Cut("v0.2.0"))

	tags, err := r.Git("tag", "--points-at", "HEAD")
	require.NoError(t, err)
	require.Equal(t, []string{"examples/v0.2.0", "franz/v0.2.0", "peers/v0.2.0", "v0.2.0"}, strings.Fields(tags), "not lab")
	status, err := r.Git("status", "--porcelain")
	require.NoError(t, err)
	require.Empty(t, status)

	franz, err := r.Mod("franz")
	require.NoError(t, err)
	require.Equal(t, "v0.2.0", franz.Require[0].Mod.Version)
	work, err := os.ReadFile(filepath.Join(r.Dir, "go.work"))
	require.NoError(t, err)
	require.Contains(t, string(work), "neli v0.2.0 => ./")
	sums, err := r.Sums(Module{".", Root}, "v0.2.0", "HEAD")
	require.NoError(t, err)
	written, err := os.ReadFile(filepath.Join(r.Dir, "franz", "go.sum"))
	require.NoError(t, err)
	require.Equal(t, strings.Join(sums, "\n")+"\n", string(written))

	proxy := t.TempDir()
	require.NoError(t, r.Proxy(proxy))
	list, err := os.ReadFile(filepath.Join(proxy, Root, "franz", "@v", "list"))
	require.NoError(t, err)
	require.Equal(t, "v0.2.0\n", string(list))

	require.ErrorContains(t, r.Cut("v0.2.0"), "not after v0.2.0")
	_, err = r.Git("tag", "--delete", "v0.2.0")
	require.NoError(t, err)
	require.ErrorContains(t, r.Cut("v0.2.0"), "there is a tag peers/v0.2.0 already")
	_, err = r.Git("tag", "v0.2.0")
	require.NoError(t, err)
	require.ErrorContains(t, r.Cut("0.3.0"), "not a version")
	require.ErrorContains(t, r.Cut("v2.0.0"), "paths of modules")
	require.NoError(t, os.WriteFile(filepath.Join(r.Dir, "stray"), nil, 0o644))
	require.ErrorContains(t, r.Cut("v0.3.0"), "stray")
}

// A changelog without the heading would be released without the version.
func TestCutNeedsTheUnreleasedHeading(t *testing.T) {
	r := checkout(t, map[string]string{"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n- A line.\n"})
	require.ErrorContains(t, r.Cut("v0.2.0"), "CHANGELOG.md has no line \"## [Unreleased]\"")
	status, err := r.Git("status", "--porcelain")
	require.NoError(t, err)
	require.Empty(t, status, "nothing was written")
}

func TestErrorOutsideACheckout(t *testing.T) {
	t.Setenv("LC_ALL", "C")
	t.Chdir(t.TempDir())
	_, err := Here()
	require.ErrorContains(t, err, "not a git repository")
}

// Modules for users must not require modules for tests, or modules that users cannot fetch.
func TestPublishedRefusesWhatUsersShouldNotFetch(t *testing.T) {
	for requires, complaint := range map[string]string{
		"require github.com/goneli/neli/examples v0.1.0": "should not have to fetch",
		"require github.com/goneli/neli/lab v0.1.0":      "is not published",
		"replace github.com/goneli/neli => ../":          "replaces modules",
	} {
		r := checkout(t, map[string]string{"franz/go.mod": "module github.com/goneli/neli/franz\n\n" + requires + "\n"})
		_, err := r.Published()
		require.ErrorContains(t, err, complaint)
	}
}

func TestNext(t *testing.T) {
	require.Equal(t, "v0.1.0", Next(nil))
	require.Equal(t, "v0.11.0", Next([]string{"v0.9.0", "v0.10.3"}))
	require.Equal(t, "v1.3.0", Next([]string{"v1.2.0-rc.1"}))
}

func TestChangelog(t *testing.T) {
	at := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	text := released([]byte("# Changelog\n\n## [Unreleased]\n\n- new\n\n## [0.1.0] - 2026-01-01\n\n- old\n"), "v0.2.0", at)
	require.Contains(t, string(text), "## [0.2.0] - 2026-11-25\n\n- new\n")
	require.Contains(t, Section(text, "0.2.0"), "- new")
	require.NotContains(t, Section(text, "0.2.0"), "- old")
	require.NotContains(t, Section(text, "Unreleased"), "- new")
	require.Empty(t, Section(text, "0.3.0"))
}

// A go.sum in another order than Go's would make a release untidy.
func TestFormatSumsIsGosOrder(t *testing.T) {
	r, err := Here()
	require.NoError(t, err)
	for _, dir := range []string{"examples", "lab"} {
		b, err := os.ReadFile(filepath.Join(r.Dir, dir, "go.sum"))
		require.NoError(t, err)
		lines := strings.Split(string(b), "\n")
		slices.Sort(lines)
		require.Equal(t, string(b), string(FormatSums(lines)))
	}
}
