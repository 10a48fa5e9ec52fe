package integration

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

// formerCommit replaces the former release until there is one. It is the first commit whose members understand this suite.
const formerCommit = "93dea8b4d74544eb685e2e6d50b4a578ffd77bc8"

// upgradeTimeout is T: six members, a broker and other tests must not delay any of them for so long.
const upgradeTimeout = 10 * time.Second

// Three processes of the former release are replaced one by one by those of this release, and back, the leader last.
// Restarts of followers cost no term, and each restart of a leader costs one.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	former := buildFormer(t)
	e := newEnv(t, 1, 0, nil)
	for _, client := range slices.Sorted(maps.Keys(clients)) {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			el := exclusive(t, e, neli.NominationOpen, upgradeTimeout, func(p *contenderParams) { p.Client = client })
			by := func(program string) func(*memberParams) { return func(m *memberParams) { m.program = program } }
			led := []held{}
			running := []*member{el.start("former", by(former))}
			led = append(led, el.leader(0, 2*firstLeader))
			for range 2 {
				running = append(running, el.start("former", by(former)))
				el.follows(running[len(running)-1])
			}
			for _, program := range []string{"", former} {
				leader := led[len(led)-1]
				for _, m := range slices.Clone(running) {
					if m != leader.member {
						running = el.replace(running, m, by(program))
						assert.Equal(t, leader.token, el.leader(0, patience).token, "another term")
					}
				}
				running = el.replace(running, leader.member, by(program))
				next := el.leader(0, patience, leader.member)
				assert.Greater(t, next.token, leader.token)
				led = append(led, next)
			}
			var tokens []int64
			for _, h := range led {
				tokens = append(tokens, h.token)
			}
			for _, term := range el.terms(0, 0) {
				assert.Contains(t, tokens, term.Token, "a term beyond those of the restarts: %v", term)
			}
		})
	}
}

// replace closes a member, starts another one in its place, and waits until that is ready to lead.
func (e *election) replace(running []*member, old *member, how func(*memberParams)) []*member {
	e.t.Helper()
	old.close(patience)
	next := e.start("next", how)
	e.follows(next)
	return append(slices.DeleteFunc(running, func(m *member) bool { return m == old }), next)
}

// buildFormer builds the test binary of this suite from the former release, which can act as a member, and returns its path.
// The former release is the newest tag before this commit.
func buildFormer(t *testing.T) string {
	t.Helper()
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	former, err := git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^")
	if err != nil {
		former = formerCommit
		if _, err := git("cat-file", "-e", former); err != nil {
			if said, err := git("fetch", "--quiet", "--depth=1", "origin", former); err != nil {
				whole, known := git("rev-parse", "--is-shallow-repository")
				require.False(t, known == nil && whole == "false", "commit %s is not in this repository: %s", former, said)
				t.Skipf("commit %s, whose members are to be upgraded, is not in this clone: git fetch --unshallow", former)
			}
		}
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "former.tar")
	said, err := git("-C", "../..", "archive", "-o", archive, former)
	require.NoError(t, err, said)
	out, err := exec.CommandContext(t.Context(), "tar", "-xf", archive, "-C", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	program := filepath.Join(dir, "former.test")
	args := []string{"test", "-c", "-o", program, "."}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = slices.Insert(args, 1, "-race") // so that unchanged packages are compiled already
	}
	cmd := exec.CommandContext(t.Context(), "nice", append([]string{"-n", "19", "go"}, args...)...) // so that the build does not starve the members
	cmd.Dir = filepath.Join(dir, "lab", "integration")
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"))
	began := time.Now()
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("members of %s were built within %v", former, time.Since(began).Round(time.Second))
	return program
}
