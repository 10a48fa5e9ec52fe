// Command check checks whether users can install what is committed here. It makes the release in a clone, unless the
// commit is a release, and serves all tags from a file proxy. Then it fetches, builds, installs and runs them like a
// user, and compares the API with that of the former release.
//
//	go run ./check [-version v0.2.0]
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/goneli/neli/lab/release/internal/repo"
)

func main() {
	version := flag.String("version", "", "the release to rehearse (default: the next minor version)")
	flag.Parse()
	if err := run(*version); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func run(version string) error {
	source, err := repo.Here()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "neli-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	c := &check{work: work, clone: repo.Repo{Dir: filepath.Join(work, "clone")}}
	if _, err := source.Git("clone", "--quiet", source.Dir, c.clone.Dir); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"tag", func() error { return c.tag(version) }},
		{"proxy", c.prepare},
		{"fetch as git does", c.git},
		{"get and build each module", c.get},
		{"vet a program that imports everything", c.everything},
		{"resolve imports without the workspace", c.alone},
		{"install the commands", c.install},
		{"run the README's first example and examples/basic", c.programs},
		{"compare the API with the former release", c.api},
	} {
		began := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("%3d s  %s\n", int(time.Since(began).Seconds()), step.name)
	}
	return nil
}

// check is one run.
type check struct {
	work    string
	clone   repo.Repo
	version string        // the release to check
	modules []repo.Module // the published ones
}

// tag makes the release in the clone, unless the commit is a release. Only the clone has commits by release-check.
func (c *check) tag(version string) error {
	for k, v := range map[string]string{"GIT_AUTHOR_NAME": "release-check", "GIT_COMMITTER_NAME": "release-check",
		"GIT_AUTHOR_EMAIL": "release-check@localhost", "GIT_COMMITTER_EMAIL": "release-check@localhost"} {
		if err := os.Setenv(k, v); err != nil {
			return err
		}
	}
	here, err := c.released()
	if err != nil {
		return err
	}
	c.version = here
	if here == "" || version != "" && version != here { // a candidate's commit may become another release
		versions, err := c.clone.Versions()
		if err != nil {
			return err
		}
		if c.version = version; version == "" {
			c.version = repo.Next(versions)
		}
		if err := c.clone.Cut(c.version); err != nil {
			return err
		}
	}
	if c.modules, err = c.clone.Tagged(c.version); err != nil {
		return err
	}
	published, err := c.clone.Published()
	if err != nil {
		return err
	}
	if len(c.modules) != len(published) {
		return fmt.Errorf("of %v only %v have tags of %s", published, c.modules, c.version)
	}
	return nil
}

// released returns the version that the commit is a release of, or "". The root's tag is pushed last: if it is
// still missing, the clone gets it.
func (c *check) released() (string, error) {
	out, err := c.clone.Git("tag", "--points-at", "HEAD")
	if err != nil {
		return "", err
	}
	published, err := c.clone.Published()
	if err != nil {
		return "", err
	}
	tags := strings.Fields(out)
	for _, tag := range tags {
		version := tag[strings.LastIndex(tag, "/")+1:]
		if !semver.IsValid(version) || !slices.ContainsFunc(published, func(m repo.Module) bool { return m.Tag(version) == tag }) {
			continue
		}
		if !slices.Contains(tags, version) {
			_, err = c.clone.Git("tag", "-a", "-m", version, version)
		}
		return version, err
	}
	return "", nil
}

// prepare makes the proxy. All further Go commands use it, and a module cache of their own. So that nothing is fetched
// twice, they also use other modules from the user's cache.
func (c *check) prepare() error {
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return err
	}
	cache, proxies, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	proxy := filepath.Join(c.work, "proxy")
	for k, v := range map[string]string{
		"GOPROXY":    "file://" + proxy + ",file://" + filepath.Join(cache, "cache", "download") + "," + proxies,
		"GONOSUMDB":  repo.Root + "," + repo.Root + "/*",
		"GOMODCACHE": filepath.Join(c.work, "modules"),
		"GOBIN":      filepath.Join(c.work, "bin"),
		"GOWORK":     "off",
		// -trimpath: packages need not be compiled again for each new module cache.
		"GOFLAGS": "-trimpath -modcacherw -buildvcs=false",
	} {
		if err := os.Setenv(k, v); err != nil {
			return err
		}
	}
	return c.clone.Proxy(proxy)
}

// scratch makes a user's module that has fetched some of our modules.
func (c *check) scratch(name string, modules ...repo.Module) (string, error) {
	dir := filepath.Join(c.work, "scratch", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := inDir(dir, "go", "mod", "init", "scratch.test/"+name); err != nil {
		return "", err
	}
	get := []string{"go", "get"}
	for _, m := range modules {
		get = append(get, m.Path+"/...@"+c.version) // with the dependencies of its packages
	}
	return dir, inDir(dir, get...)
}

// libraries returns the published modules that are neither for trial nor commands.
func (c *check) libraries() []repo.Module {
	return slices.DeleteFunc(slices.Clone(c.modules), func(m repo.Module) bool {
		return m.Trial() || m.Command()
	})
}

// inDir runs a command in a folder. Its error has the command's output.
func inDir(dir string, args ...string) error {
	_, err := output(dir, args...)
	return err
}

func output(dir string, args ...string) (string, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
