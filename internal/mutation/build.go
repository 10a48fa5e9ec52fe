package mutation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A target is a package with guards, and its test binary.
type target struct {
	pkg     string // as an argument of go test
	dir     string // the directory where its tests run
	mutants []*mutant

	work   string // the directory for overlays and binaries
	binary string // has all mutants behind a switch, except those in solo
	solo   []*mutant
}

// targets returns the packages whose tests the mutants need, in the table's order.
func targets(ctx context.Context, work string, mutants []*mutant) ([]*target, error) {
	var all []*target
	for _, m := range mutants {
		pkg := m.Package
		if pkg == "" {
			pkg = "."
		}
		i := slices.IndexFunc(all, func(t *target) bool { return t.pkg == pkg })
		if i < 0 {
			out, err := goCommand(ctx, "list", "-f", "{{.Dir}}", pkg)
			if err != nil {
				return nil, fmt.Errorf("mutation: %q: package %q: %w\n%s", m.Rule, pkg, err, out)
			}
			i = len(all)
			t := &target{pkg: pkg, dir: strings.TrimSpace(out), work: filepath.Join(work, strconv.Itoa(i))}
			if err := os.Mkdir(t.work, 0o755); err != nil {
				return nil, err
			}
			all = append(all, t)
		}
		all[i].mutants = append(all[i].mutants, m)
	}
	return all, nil
}

// build makes the target's binary. It leaves out a mutant that does not compile, for example
// because a variable is no longer used. That mutant gets a build of its own, which either succeeds
// or shows what is wrong.
func (t *target) build(ctx context.Context) error {
	t.binary = filepath.Join(t.work, "all.test")
	for rest := t.mutants; ; {
		files, _ := overlay(rest)
		out, err := t.compile(ctx, files, t.binary)
		if err == nil {
			t.solo = t.unswitched(rest)
			return nil
		}
		if len(files) == 0 {
			return fmt.Errorf("mutation: the tests of %s do not build: %w\n%s", t.pkg, err, out)
		}
		bad := culprits(out)
		if len(bad) == 0 {
			rest = nil
			continue
		}
		rest = slices.DeleteFunc(slices.Clone(rest), func(m *mutant) bool { return slices.Contains(bad, m.id) })
	}
}

// unswitched returns the mutants that are missing from a binary built with those in rest.
func (t *target) unswitched(rest []*mutant) []*mutant {
	_, solo := overlay(rest)
	return slices.DeleteFunc(slices.Clone(t.mutants), func(m *mutant) bool {
		return slices.Contains(rest, m) && !slices.Contains(solo, m)
	})
}

// binaryOf returns the binary that contains a mutant. It builds one if that is not the common binary.
func (t *target) binaryOf(ctx context.Context, m *mutant) (string, error) {
	if !slices.Contains(t.solo, m) {
		return t.binary, nil
	}
	binary := filepath.Join(t.work, fmt.Sprintf("%d.test", m.id))
	source := "//line " + m.path + ":1\n" + m.mutated() // for the compiler's messages
	out, err := t.compile(ctx, map[string]string{m.path: source}, binary)
	if err != nil {
		return "", fmt.Errorf("the mutant does not build: %w\n%s", err, out)
	}
	return binary, nil
}

// compile builds the target's test binary with the given contents of files.
func (t *target) compile(ctx context.Context, files map[string]string, binary string) (string, error) {
	replace := map[string]string{}
	for path, content := range files {
		file := fmt.Sprintf("%s.%d.go", binary, len(replace))
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return "", err
		}
		replace[path] = file
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(binary+".json", list, 0o600); err != nil {
		return "", err
	}
	out, err := goCommand(ctx, "test", "-c", "-vet=off", "-gcflags=-l", "-ldflags=-s -w",
		"-overlay", binary+".json", "-o", binary, t.pkg)
	if _, missing := os.Stat(binary); err == nil && missing != nil {
		err = errors.New("no test files")
	}
	return out, err
}

// goCommand runs go in the working directory, which is that of the table's test.
func goCommand(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var culprit = regexp.MustCompile(`(?m)\bmutant(\d+)[/\\][^\n:]+\.go:\d+`)

// culprits returns the ids of the mutants in whose code the compiler found errors.
func culprits(out string) []int {
	var ids []int
	for _, m := range culprit.FindAllStringSubmatch(out, -1) {
		if id, err := strconv.Atoi(m[1]); err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
