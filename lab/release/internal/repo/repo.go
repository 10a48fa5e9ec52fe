// Package repo knows the modules of this repository, their versions and tags, and makes from them the files that Go
// fetches.
package repo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// Root is the path of the module at the top.
const Root = "github.com/goneli/neli"

// Lab is the folder of module lab. Tests of other modules import its packages through go.work.
const Lab = "lab"

// unpublished lists the folders of modules that get no tag, since users do not import them.
var unpublished = []string{"examples/migration", Lab}

// forTrial lists the folders of published modules that no library may require.
var forTrial = []string{"examples"}

// Module is a module of the repository.
type Module struct {
	Dir  string // relative to the top, with slashes; "." is the top
	Path string
}

// Tag returns the tag of a version of the module.
func (m Module) Tag(version string) string {
	if m.Dir == "." {
		return version
	}
	return m.Dir + "/" + version
}

// Subdir returns Dir, or "" for the top.
func (m Module) Subdir() string { return strings.TrimPrefix(m.Dir, ".") }

// Trial reports whether the module is for trying the library, and not for use in programs.
func (m Module) Trial() bool { return slices.Contains(forTrial, m.Dir) }

// Command reports whether the module is a command, which users install.
func (m Module) Command() bool { return strings.HasPrefix(m.Dir, "cmd/") }

// Repo is a checkout.
type Repo struct {
	Dir string // absolute
}

// Here returns the checkout of the working directory.
func Here() (Repo, error) {
	top, err := Repo{}.Git("rev-parse", "--show-toplevel")
	return Repo{top}, err
}

// Git runs git, and returns its output without space around it.
func (r Repo) Git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Dir
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return text, nil
}

// All returns the modules of go.work.
func (r Repo) All() ([]Module, error) {
	path := filepath.Join(r.Dir, "go.work")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork(path, b, nil)
	if err != nil {
		return nil, err
	}
	var all []Module
	for _, use := range work.Use {
		dir := filepath.ToSlash(filepath.Clean(use.Path))
		f, err := r.Mod(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, Module{dir, f.Module.Mod.Path})
	}
	return all, nil
}

// Mod returns the go.mod of a folder.
func (r Repo) Mod(dir string) (*modfile.File, error) {
	path := filepath.Join(r.Dir, dir, "go.mod")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(path, b, nil)
}

// Published returns the modules that get tags, each after those that it requires. It fails if one requires a module
// that users cannot fetch or should not have to fetch.
func (r Repo) Published() ([]Module, error) {
	all, err := r.All()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m Module) bool { return slices.Contains(unpublished, m.Dir) })
	var sorted []Module
	for len(sorted) < len(all) {
		before := len(sorted)
		for _, m := range all {
			if slices.Contains(sorted, m) {
				continue
			}
			needs, err := r.requires(m, all)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(needs, func(n Module) bool { return !slices.Contains(sorted, n) }) {
				sorted = append(sorted, m)
			}
		}
		if len(sorted) == before {
			return nil, fmt.Errorf("modules require each other in a circle: all of %v except %v", all, sorted)
		}
	}
	return sorted, nil
}

// requires returns the published modules that m requires.
func (r Repo) requires(m Module, published []Module) ([]Module, error) {
	f, err := r.Mod(m.Dir)
	if err != nil {
		return nil, err
	}
	if len(f.Replace) > 0 {
		return nil, fmt.Errorf("%s/go.mod replaces modules: go install refuses it, and users' builds ignore it", m.Dir)
	}
	var needs []Module
	for _, req := range f.Require {
		if !Ours(req.Mod.Path) {
			continue
		}
		i := slices.IndexFunc(published, func(n Module) bool { return n.Path == req.Mod.Path })
		if i < 0 {
			return nil, fmt.Errorf("%s requires %s, which is not published", m.Path, req.Mod.Path)
		}
		if published[i].Trial() && !m.Trial() {
			return nil, fmt.Errorf("%s requires %s, which users should not have to fetch", m.Path, req.Mod.Path)
		}
		needs = append(needs, published[i])
	}
	return needs, nil
}

// Ours reports whether a module's path is one of this repository.
func Ours(path string) bool { return path == Root || strings.HasPrefix(path, Root+"/") }

// Versions returns the versions that have tags, in ascending order.
func (r Repo) Versions() ([]string, error) {
	out, err := r.Git("tag", "--list", "v*")
	if err != nil {
		return nil, err
	}
	versions := slices.DeleteFunc(strings.Fields(out), func(v string) bool { return !semver.IsValid(v) })
	semver.Sort(versions)
	return versions, nil
}

// Tagged returns the published modules that have a tag of a version.
func (r Repo) Tagged(version string) ([]Module, error) {
	published, err := r.Published()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(published, func(m Module) bool {
		_, err := r.Git("rev-parse", "--verify", "--quiet", "refs/tags/"+m.Tag(version))
		return err != nil
	}), nil
}
