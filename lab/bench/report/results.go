// Package report writes the results: a summary, and a page about settings and methods.
package report

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/bench/trial"
)

// Results are stored, so that the pages can be written again without measuring again. Everything names the run in which it was
// measured. New measurements replace those of the same name, and only these get a newer commit and date.
type Results struct {
	Runs    []Run
	Systems []System
}

// Run says when, from which sources, how and on which machine something was measured.
type Run struct {
	ID       string // unique, and ascending with time
	Commit   string
	Date     string
	Command  string
	Took     string   `json:",omitempty"`
	Machine  string   `json:",omitempty"`
	Versions []string `json:",omitempty"`
	N, Few   int      `json:",omitempty"`
	Window   string   `json:",omitempty"` // of idle groups
}

// System has the measurements of one system.
type System struct {
	Family, Bed, Setting string
	Run                  string
	Lease                float64 // nominal, ms
	Inside               bool    `json:",omitempty"` // the members are the servers
	Sentinel             bool    `json:",omitempty"` // one runs beside the members
	*trial.Results
	Idle []idle.Usage `json:",omitempty"`
}

// Take adds the measurements of a run.
func (r *Results) Take(run Run, fresh *Results) {
	r.Runs = append(r.Runs, run)
	for _, s := range fresh.Systems {
		s.Run = run.ID
		r.Systems = put(r.Systems, s, func(o System) bool { return o.Family == s.Family && o.Bed == s.Bed && o.Setting == s.Setting },
			func(o System) bool { return o.Family == s.Family && o.Bed == s.Bed })
	}
	r.tidy()
}

// put replaces the element with the same key, or inserts e after the last similar one.
func put[E any](list []E, e E, same, alike func(E) bool) []E {
	if i := slices.IndexFunc(list, same); i >= 0 {
		list[i] = e
		return list
	}
	at := len(list)
	for i, old := range list {
		if alike(old) {
			at = i + 1
		}
	}
	return slices.Insert(list, at, e)
}

// tidy drops runs without results.
func (r *Results) tidy() {
	used := map[string]bool{}
	for _, s := range r.Systems {
		used[s.Run] = true
	}
	r.Runs = slices.DeleteFunc(r.Runs, func(run Run) bool { return !used[run.ID] })
	slices.SortFunc(r.Runs, func(a, b Run) int { return strings.Compare(a.ID, b.ID) })
}

// runs lists the ids of the runs that measured systems.
func (r *Results) runs() (ids []string) {
	for _, s := range r.Systems {
		ids = append(ids, s.Run)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Names of the summary and of the page about settings and methods.
const (
	PageName    = "benchmarks.md"
	MethodsName = "README.md"
)

// Load reads results; none if there is no such file.
func Load(path string) (*Results, error) {
	r := &Results{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	return r, json.Unmarshal(text, r)
}

// Save writes results.
func (r *Results) Save(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Write writes the summary into one directory, and the methods into the one of the results.
func (r *Results) Write(docs, results string) error {
	files := map[string]string{filepath.Join(docs, PageName): PageName, filepath.Join(results, MethodsName): MethodsName}
	for path, name := range files {
		page, err := r.Page(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			return err
		}
	}
	return nil
}
