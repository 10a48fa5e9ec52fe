// Command tidy runs go mod tidy in each module. That needs all required versions to be released, so while it runs, the
// modules of this checkout replace them. No module gets a requirement of lab. With -check it changes nothing, and fails if something would change.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/goneli/neli/lab/release/internal/repo"
)

func main() {
	check := flag.Bool("check", false, "change nothing, fail if something would change")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "tidy:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	r, err := repo.Here()
	if err != nil {
		return err
	}
	all, err := r.All()
	if err != nil {
		return err
	}
	for _, m := range all {
		changed, err := tidy(r, m, all, check)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Dir, err)
		}
		if changed && check {
			return fmt.Errorf("%s/go.mod or go.sum is not tidy: make tidy", m.Dir)
		}
	}
	return nil
}

// tidy makes a module tidy unless check is set, and reports whether anything changes.
func tidy(r repo.Repo, m repo.Module, all []repo.Module, check bool) (changed bool, err error) {
	work, err := os.MkdirTemp("", "neli-tidy")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)
	sums, err := os.ReadFile(filepath.Join(r.Dir, m.Dir, "go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return false, err
	}
	f, err := r.Mod(m.Dir)
	if err != nil {
		return false, err
	}
	had, err := f.Format()
	if err != nil {
		return false, err
	}
	for _, n := range all {
		dir := filepath.Join(r.Dir, n.Dir)
		if n.Dir == repo.Lab && m != n {
			dir = filepath.Join(work, "lab")
			if err := empty(dir, filepath.Join(r.Dir, n.Dir)); err != nil {
				return false, err
			}
		}
		if err := f.AddReplace(n.Path, "", dir, ""); err != nil {
			return false, err
		}
	}
	ours, others := split(sums)
	standIn, err := f.Format()
	if err != nil {
		return false, err
	}
	mod, sum := filepath.Join(work, "go.mod"), filepath.Join(work, "go.sum")
	if err := os.WriteFile(mod, standIn, 0o644); err != nil {
		return false, err
	}
	if err := os.WriteFile(sum, others, 0o644); err != nil {
		return false, err
	}
	cmd := exec.Command("go", "mod", "tidy", "-modfile", mod)
	cmd.Dir = filepath.Join(r.Dir, m.Dir)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return false, fmt.Errorf("go mod tidy: %w\n%s", err, out)
	}
	has, hasSums, err := read(mod, sum)
	if err != nil {
		return false, err
	}
	hasSums = repo.FormatSums(strings.Split(string(hasSums)+string(ours), "\n"))
	changed = !bytes.Equal(had, has) || !bytes.Equal(sums, hasSums)
	if check || !changed {
		return changed, nil
	}
	if err := os.WriteFile(filepath.Join(r.Dir, m.Dir, "go.mod"), has, 0o644); err != nil {
		return false, err
	}
	return true, os.WriteFile(filepath.Join(r.Dir, m.Dir, "go.sum"), hasSums, 0o644)
}

// empty makes a module with the packages of lab and no code. So a module whose tests import lab does not get lab's
// requirements.
func empty(dir, lab string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+repo.Root+"/"+repo.Lab+"\n"), 0o644); err != nil {
		return err
	}
	return filepath.WalkDir(lab, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		of, err := filepath.Rel(lab, filepath.Dir(path))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(dir, of), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, of, "empty.go"), []byte("package empty\n"), 0o644)
	})
}

// split separates the lines of a go.sum for our modules from the others.
func split(sums []byte) (ours, others []byte) {
	for line := range bytes.Lines(sums) {
		if path, _, _ := bytes.Cut(line, []byte(" ")); repo.Ours(string(path)) {
			ours = append(ours, line...)
		} else {
			others = append(others, line...)
		}
	}
	return ours, others
}

// read returns the result of go mod tidy without the replacements and without lab.
func read(mod, sum string) (gomod, gosum []byte, err error) {
	if gomod, err = os.ReadFile(mod); err != nil {
		return nil, nil, err
	}
	f, err := modfile.Parse(mod, gomod, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, rep := range slices.Clone(f.Replace) {
		if err := f.DropReplace(rep.Old.Path, rep.Old.Version); err != nil {
			return nil, nil, err
		}
	}
	if err := f.DropRequire(repo.Root + "/" + repo.Lab); err != nil {
		return nil, nil, err
	}
	f.Cleanup()
	if gomod, err = f.Format(); err != nil {
		return nil, nil, err
	}
	if gosum, err = os.ReadFile(sum); os.IsNotExist(err) {
		err = nil
	}
	return gomod, gosum, err
}
