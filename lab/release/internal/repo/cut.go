package repo

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Next returns the version after the newest tag, with the next minor version.
func Next(tags []string) string {
	if len(tags) == 0 {
		return "v0.1.0"
	}
	var major, minor, patch int
	newest := strings.TrimSuffix(tags[len(tags)-1], semver.Prerelease(tags[len(tags)-1]))
	_, _ = fmt.Sscanf(newest, "v%d.%d.%d", &major, &minor, &patch) // a tag is a valid version
	return fmt.Sprintf("v%d.%d.0", major, minor+1)
}

// Cut writes a version into all modules and the changelog, commits that, and tags the commit. It pushes nothing. The
// checkout must be clean.
func (r Repo) Cut(version string) error {
	if err := r.mayCut(version); err != nil {
		return err
	}
	published, err := r.Published()
	if err != nil {
		return err
	}
	if err := r.writeVersion(version, published); err != nil {
		return err
	}
	if err := r.recordFormat(version); err != nil {
		return err
	}
	if _, err := r.Git("add", "--all"); err != nil {
		return err
	}
	if _, err := r.Git("commit", "--quiet", "-m", "release "+version); err != nil {
		return err
	}
	if err := r.writeSums(version, published); err != nil {
		return err
	}
	for _, m := range published {
		if _, err := r.Git("tag", "-a", "-m", m.Path+" "+version, m.Tag(version)); err != nil {
			return err
		}
	}
	return nil
}

// mayCut returns an error if the checkout cannot become that version.
func (r Repo) mayCut(version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("%q is not a version: VERSION=vX.Y.Z", version)
	}
	if semver.Compare(version, "v2") >= 0 {
		return fmt.Errorf("%s: from v2 on, the paths of modules end in the major version, which must be changed by hand", version)
	}
	versions, err := r.Versions()
	if err != nil {
		return err
	}
	if n := len(versions); n > 0 && semver.Compare(versions[n-1], version) >= 0 {
		return fmt.Errorf("%s is not after %s, which is tagged", version, versions[n-1])
	}
	switch tagged, err := r.Tagged(version); {
	case err != nil:
		return err
	case len(tagged) > 0:
		return fmt.Errorf("there is a tag %s already, and none of the root", tagged[0].Tag(version))
	}
	changelog, err := os.ReadFile(filepath.Join(r.Dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if !bytes.Contains(changelog, []byte(unreleased)) {
		return fmt.Errorf("CHANGELOG.md has no line %q", strings.TrimSpace(unreleased))
	}
	status, err := r.Git("status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		return fmt.Errorf("commit or drop these first:\n%s", status)
	}
	return nil
}

// writeVersion makes all modules require that version of each other, go.work replace it, and the changelog name it.
func (r Repo) writeVersion(version string, published []Module) error {
	all, err := r.All()
	if err != nil {
		return err
	}
	for _, m := range all {
		f, err := r.Mod(m.Dir)
		if err != nil {
			return err
		}
		for _, req := range f.Require {
			if Ours(req.Mod.Path) {
				if err := f.AddRequire(req.Mod.Path, version); err != nil {
					return err
				}
			}
		}
		b, err := f.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.Dir, m.Dir, "go.mod"), b, 0o644); err != nil {
			return err
		}
	}
	if err := r.writeWork(version, published); err != nil {
		return err
	}
	path := filepath.Join(r.Dir, "CHANGELOG.md")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, released(b, version, time.Now()), 0o644)
}

// writeWork puts that version into go.work's replacements of our modules.
func (r Repo) writeWork(version string, published []Module) error {
	path := filepath.Join(r.Dir, "go.work")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork(path, b, nil)
	if err != nil {
		return err
	}
	for _, rep := range slices.Clone(work.Replace) {
		if !Ours(rep.Old.Path) {
			continue
		}
		i := slices.IndexFunc(published, func(m Module) bool { return m.Path == rep.Old.Path })
		if i < 0 {
			return fmt.Errorf("go.work replaces %s, which is not published", rep.Old.Path)
		}
		b = bytes.ReplaceAll(b, []byte(rep.Old.Path+" "+rep.Old.Version+" =>"), []byte(rep.Old.Path+" "+version+" =>"))
	}
	return os.WriteFile(path, b, 0o644)
}

const unreleased = "## [Unreleased]\n"

// released moves the changelog's unreleased entries below a version.
func released(changelog []byte, version string, at time.Time) []byte {
	heading := fmt.Sprintf("%s\n## [%s] - %s\n", unreleased, version[1:], at.UTC().Format(time.DateOnly))
	return bytes.Replace(changelog, []byte(unreleased), []byte(heading), 1)
}

// Section returns the part of a changelog below the heading of a version, which is given without the v.
func Section(changelog []byte, version string) string {
	_, after, found := strings.Cut(string(changelog), "## ["+version+"]")
	if !found {
		return ""
	}
	_, after, _ = strings.Cut(after, "\n")
	before, _, _ := strings.Cut(after, "\n## [")
	return before
}

// recordFormat saves samples of this version's records, for the tests of later versions.
func (r Repo) recordFormat(version string) error {
	for dir, packages := range map[string][]string{"": {"./internal/lease", "./internal/sentinel"}, "peers": {"./internal/wire"}} {
		cmd := exec.Command("go", append([]string{"test", "-count=1", "-run", "^TestRecordsOfReleases$"}, packages...)...)
		cmd.Dir = filepath.Join(r.Dir, dir)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "NELI_RELEASE="+version)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("records of former releases: %w\n%s", err, out)
		}
	}
	return nil
}

// writeSums adds to the last commit the sums of the modules that others require. A module's go.sum needs the sums of
// the modules that it requires, so those modules come first.
func (r Repo) writeSums(version string, published []Module) error {
	sums := map[string][]string{}
	for _, m := range published {
		if err := r.writeSumsOf(m, sums); err != nil {
			return err
		}
		if _, err := r.Git("add", "--all"); err != nil { // a go.sum may be new
			return err
		}
		if _, err := r.Git("commit", "--quiet", "--amend", "--no-edit"); err != nil {
			return err
		}
		lines, err := r.Sums(m, version, "HEAD")
		if err != nil {
			return err
		}
		sums[m.Path] = lines
	}
	return nil
}

// writeSumsOf writes the sums of our modules that m requires into its go.sum, and removes former ones.
func (r Repo) writeSumsOf(m Module, sums map[string][]string) error {
	f, err := r.Mod(m.Dir)
	if err != nil {
		return err
	}
	path := filepath.Join(r.Dir, m.Dir, "go.sum")
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) { // a module that requires nothing has none
		return err
	}
	lines := slices.DeleteFunc(strings.Split(string(b), "\n"), func(line string) bool {
		path, _, _ := strings.Cut(line, " ")
		return path == "" || Ours(path)
	})
	for _, req := range f.Require {
		lines = append(lines, sums[req.Mod.Path]...)
	}
	if len(lines) == 0 {
		return nil
	}
	return os.WriteFile(path, FormatSums(lines), 0o644)
}

// FormatSums returns a go.sum with these lines, in the order in which Go writes them.
func FormatSums(lines []string) []byte {
	versions := map[module.Version]string{}
	var sorted []module.Version
	for _, line := range lines {
		if f := strings.Fields(line); len(f) == 3 {
			v := module.Version{Path: f[0], Version: f[1]}
			sorted, versions[v] = append(sorted, v), line
		}
	}
	module.Sort(sorted)
	var b bytes.Buffer
	for _, v := range sorted {
		b.WriteString(strings.TrimSpace(versions[v]) + "\n")
	}
	return b.Bytes()
}
