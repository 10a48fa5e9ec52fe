// Command notice prints NOTICE: every module that is part of a build of this library or of the commands, with the text
// of its licence.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"github.com/goneli/neli/lab/release/internal/repo"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
}

// platforms lists the platforms to look at, since imports differ between them.
var platforms = []string{"linux", "darwin", "windows"}

func run() error {
	r, err := repo.Here()
	if err != nil {
		return err
	}
	text, err := notice(r)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

// notice returns the text of the file.
func notice(r repo.Repo) ([]byte, error) {
	modules, err := r.Published()
	if err != nil {
		return nil, err
	}
	found := map[string]dependency{}
	for _, m := range modules {
		if m.Trial() {
			continue
		}
		for _, platform := range platforms {
			if err := dependencies(filepath.Join(r.Dir, m.Dir), platform, found); err != nil {
				return nil, err
			}
		}
	}
	var b bytes.Buffer
	b.WriteString("Builds of neli contain code of these modules. `make extras` writes this file.\n")
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if err := found[path].write(&b); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// dependency is a module that is part of builds.
type dependency struct{ Path, Version, Dir string }

// dependencies adds to found the modules of all packages that those in dir import, directly or not.
func dependencies(dir, platform string, found map[string]dependency) error {
	cmd := exec.Command("go", "list", "-deps", "-json=Module", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+platform, "GOARCH=amd64", "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list in %s: %w", dir, err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *dependency }
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case p.Module != nil && !repo.Ours(p.Module.Path):
			found[p.Module.Path] = *p.Module
		}
	}
}

var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// write adds a module's licence files. A module without a known licence is an error: it must not get into builds
// unnoticed.
func (d dependency) write(b *bytes.Buffer) error {
	entries, err := os.ReadDir(d.Dir)
	if err != nil {
		return err
	}
	var ids, files []string
	var texts strings.Builder
	for _, e := range entries {
		if !e.IsDir() && legal.MatchString(e.Name()) {
			files = append(files, filepath.Join(d.Dir, e.Name()))
		}
	}
	vendored, err := filepath.Glob(filepath.Join(d.Dir, "kafka", "librdkafka_vendor", "LICENSES.txt")) // linked statically
	if err != nil {
		return err
	}
	for _, file := range append(files, vendored...) {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, match := range licensecheck.Scan(text).Match {
			if !slices.Contains(ids, match.ID) {
				ids = append(ids, match.ID)
			}
		}
		fmt.Fprintf(&texts, "\n%s\n", strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	if len(ids) == 0 {
		return fmt.Errorf("%s %s has no known licence", d.Path, d.Version)
	}
	fmt.Fprintf(b, "\n%s\n%s %s: %s\n%s", strings.Repeat("=", 80), d.Path, d.Version, strings.Join(ids, ", "), &texts)
	return nil
}
