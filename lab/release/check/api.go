package main

import (
	"bytes"
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"

	"github.com/goneli/neli/lab/release/internal/repo"
)

// api compares the libraries with those of the former release. The changelog must name every change that breaks
// users' programs.
func (c *check) api() error {
	versions, err := c.clone.Versions()
	if err != nil {
		return err
	}
	former := ""
	for _, v := range versions {
		if semver.Compare(v, c.version) < 0 {
			former = v
		}
	}
	if former == "" {
		fmt.Println("       there is no former release")
		return nil
	}
	changelog, err := os.ReadFile(filepath.Join(c.clone.Dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	old, err := c.clone.Tagged(former)
	if err != nil {
		return err
	}
	var bad bytes.Buffer
	for _, m := range c.libraries() {
		if !slices.Contains(old, m) {
			continue
		}
		report, err := c.compare(m, former)
		if err != nil {
			return err
		}
		fmt.Printf("       %s since %s:\n%s", m.Path, former, report)
		for _, message := range unsaid(report, repo.Section(changelog, c.version[1:])) {
			fmt.Fprintf(&bad, "%s: %s\n", m.Path, message)
		}
	}
	if bad.Len() > 0 {
		return fmt.Errorf("CHANGELOG.md does not name these incompatible changes:\n%s", &bad)
	}
	return nil
}

var word = regexp.MustCompile(`\w+`)

// unsaid returns the incompatible changes that the changelog's section does not name. A method's or field's own name
// is enough.
func unsaid(report apidiff.Report, section string) []string {
	said := word.FindAllString(section, -1)
	var missing []string
	for _, change := range report.Changes {
		if change.Compatible {
			continue
		}
		name, _, _ := strings.Cut(change.Message, ": ")
		names := word.FindAllString(name, -1)
		if len(names) == 0 || !slices.Contains(said, names[len(names)-1]) {
			missing = append(missing, change.Message)
		}
	}
	return missing
}

// compare loads the former and the present version of a module, and compares them.
func (c *check) compare(m repo.Module, former string) (apidiff.Report, error) {
	was, err := c.load(m, former)
	if err != nil {
		return apidiff.Report{}, err
	}
	is, err := c.load(m, c.version)
	if err != nil {
		return apidiff.Report{}, err
	}
	return apidiff.ModuleChanges(was, is), nil
}

// load returns the public packages of a version of a module.
func (c *check) load(m repo.Module, version string) (*apidiff.Module, error) {
	dir := filepath.Join(c.work, "api", version, m.Dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := inDir(dir, "go", "mod", "init", "scratch.test/api"); err != nil {
		return nil, err
	}
	if err := inDir(dir, "go", "get", m.Path+"/...@"+version); err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{Dir: dir, Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps}, m.Path+"/...")
	if err != nil {
		return nil, err
	}
	var public []*types.Package
	for _, p := range loaded {
		for _, e := range p.Errors {
			return nil, fmt.Errorf("%s: %w", p.PkgPath, e)
		}
		if p.Name != "main" && !strings.Contains(p.PkgPath+"/", "/internal/") {
			public = append(public, p.Types)
		}
	}
	return &apidiff.Module{Path: m.Path, Packages: public}, nil
}
