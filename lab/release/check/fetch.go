package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/goneli/neli/lab/release/internal/repo"
)

// git makes Go itself build each module's zip from the tags, without a proxy. The result must match what the proxy
// serves and what go.sum says.
func (c *check) git() error {
	for _, m := range c.modules {
		direct := exec.Command("go", "mod", "download", "-json", m.Path+"@"+c.version)
		direct.Dir = c.work
		direct.Env = append(os.Environ(), "GOPROXY=direct", "GOMODCACHE="+filepath.Join(c.work, "direct"), "GOFLAGS=-modcacherw",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+c.clone.Dir+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+repo.Root)
		out, err := direct.Output()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", m.Path, err, out)
		}
		var made struct{ Sum, GoModSum string }
		if err := json.Unmarshal(out, &made); err != nil {
			return err
		}
		sums, err := c.clone.Sums(m, c.version, "HEAD")
		if err != nil {
			return err
		}
		if !strings.HasSuffix(sums[0], " "+made.Sum) || !strings.HasSuffix(sums[1], " "+made.GoModSum) {
			return fmt.Errorf("%s: Go makes %v of the tag, not %v", m.Path, made, sums)
		}
	}
	return nil
}

// get fetches each library into a module of its own and builds all of its packages.
func (c *check) get() error {
	for _, m := range c.libraries() {
		dir, err := c.scratch("get-"+filepath.Base(m.Path), m)
		if err != nil {
			return err
		}
		if err := inDir(dir, "go", "build", m.Path+"/..."); err != nil {
			return err
		}
		fetched, err := output(dir, "go", "list", "-m", "-f", "{{.Path}}", "all")
		if err != nil {
			return err
		}
		for path := range strings.Lines(fetched) {
			if path = strings.TrimSpace(path); repo.Ours(path) && !c.library(path) {
				return fmt.Errorf("who fetches %s gets %s", m.Path, path)
			}
		}
	}
	return nil
}

func (c *check) library(path string) bool {
	for _, m := range c.libraries() {
		if m.Path == path {
			return true
		}
	}
	return false
}

// everything vets a program that imports all packages of all libraries.
func (c *check) everything() error {
	dir, err := c.scratch("everything", c.libraries()...)
	if err != nil {
		return err
	}
	var program strings.Builder
	program.WriteString("package main\n\nimport (\n")
	for _, m := range c.libraries() {
		packages, err := output(dir, "go", "list", "-f", "{{if ne .Name \"main\"}}{{.ImportPath}}{{end}}", m.Path+"/...")
		if err != nil {
			return err
		}
		for path := range strings.Lines(packages) {
			if path = strings.TrimSpace(path); path != "" && !strings.Contains(path, "/internal/") {
				fmt.Fprintf(&program, "\t_ %q\n", path)
			}
		}
	}
	program.WriteString(")\n\nfunc main() {}\n")
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program.String()), 0o644); err != nil {
		return err
	}
	return inDir(dir, "go", "vet", ".")
}

// alone resolves the imports of each published module of the clone by the module's own go.mod and go.sum. It includes
// the tests of libraries, which users' go mod tidy loads. Tests of examples and commands may import lab, so they need
// the workspace.
func (c *check) alone() error {
	for _, m := range c.modules {
		list := []string{"go", "list", "-mod=readonly", "-deps"}
		if c.library(m.Path) {
			list = append(list, "-test")
		}
		if err := inDir(filepath.Join(c.clone.Dir, m.Dir), append(list, "./...")...); err != nil {
			return fmt.Errorf("%s: %w", m.Dir, err)
		}
	}
	return nil
}

// install installs the commands, each of which must know its version.
func (c *check) install() error {
	for _, m := range c.modules {
		if !m.Command() {
			continue
		}
		if err := inDir(c.work, "go", "install", m.Path+"@"+c.version); err != nil {
			return err
		}
		name := filepath.Base(m.Dir)
		said, err := output(c.work, filepath.Join(c.work, "bin", name), "--version")
		if err != nil {
			return err
		}
		if !strings.HasPrefix(said, name+" "+c.version+" ") {
			return fmt.Errorf("%s --version says %q, not %s", name, said, c.version)
		}
	}
	return nil
}
