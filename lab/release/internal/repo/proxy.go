package repo

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// Zip writes the zip of a module at a revision, as Go makes it from the repository.
func (r Repo) Zip(path string, m Module, version, revision string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := zip.CreateFromVCS(f, module.Version{Path: m.Path, Version: version}, r.Dir, revision, m.Subdir()); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// Sums returns the lines of go.sum for a version of a module, from its files at a revision, which is checked out.
func (r Repo) Sums(m Module, version, revision string) ([]string, error) {
	dir, err := os.MkdirTemp("", "neli-sums")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "module.zip")
	if err := r.Zip(path, m, version, revision); err != nil {
		return nil, err
	}
	sum, err := dirhash.HashZip(path, dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	mod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return os.Open(filepath.Join(r.Dir, m.Dir, "go.mod"))
	})
	if err != nil {
		return nil, err
	}
	return []string{
		fmt.Sprintf("%s %s %s", m.Path, version, sum),
		fmt.Sprintf("%s %s/go.mod %s", m.Path, version, mod),
	}, nil
}

// Proxy makes dir a file proxy (go help goproxy) for all tags of the published modules.
func (r Repo) Proxy(dir string) error {
	versions, err := r.Versions()
	if err != nil {
		return err
	}
	for _, version := range versions {
		modules, err := r.Tagged(version)
		if err != nil {
			return err
		}
		for _, m := range modules {
			if err := r.serve(dir, m, version); err != nil {
				return fmt.Errorf("%s %s: %w", m.Path, version, err)
			}
		}
	}
	return nil
}

// serve adds a version of a module to a file proxy.
func (r Repo) serve(dir string, m Module, version string) error {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tag := "refs/tags/" + m.Tag(version)
	if err := r.Zip(filepath.Join(dir, version+".zip"), m, version, tag); err != nil {
		return err
	}
	mod, err := r.Git("show", tag+":"+strings.TrimPrefix(m.Subdir()+"/go.mod", "/"))
	if err != nil {
		return err
	}
	when, err := r.Git("log", "-1", "--format=%cI", tag)
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, when)
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": at.UTC()})
	if err != nil {
		return err
	}
	list, err := os.OpenFile(filepath.Join(dir, "list"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer list.Close()
	if _, err := fmt.Fprintln(list, version); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, version+".mod"), []byte(mod+"\n"), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, version+".info"), info, 0o644)
}
