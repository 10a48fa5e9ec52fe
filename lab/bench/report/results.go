// Package report writes the results: a summary with a picture, and a page about settings and methods.
package report

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goneli/neli/lab/bench/crowd"
	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/bench/steady"
	"github.com/goneli/neli/lab/bench/trial"
)

// Results are stored, so that the pages can be written again without measuring again. Everything names the run in which it was
// measured. New measurements replace those of the same name, and only these get a newer commit and date.
type Results struct {
	Runs    []Run
	Beds    []Bed
	Systems []System
	Quiet   []steady.Outcome `json:",omitempty"`
	Rolling []steady.Outcome `json:",omitempty"`
	Faults  []steady.Fault   `json:",omitempty"`
	Scale   []crowd.Outcome  `json:",omitempty"` // one of each size
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

// Bed has the measurements of servers alone.
type Bed struct {
	Family, Name string
	Run          string
	Alone        *idle.Usage `json:",omitempty"` // no group at all
	RoundTrips   []float64   `json:",omitempty"` // ms; Kafka
}

// System has the measurements of one system.
type System struct {
	Family, Bed, Setting string
	Run                  string
	Lease                float64 // nominal, ms
	Timeout              float64 `json:",omitempty"` // T, if the targets depend on it, ms
	Roles                int     `json:",omitempty"` // if there are several, which one member leads
	Inside               bool    `json:",omitempty"` // the members are the servers
	*trial.Results
	Idle []idle.Usage `json:",omitempty"`
	// Sentinel says whether a sentinel runs beside the members; Watching has its cost.
	Sentinel bool       `json:",omitempty"`
	Watching []Watching `json:",omitempty"`
}

// Watching is what an idle sentinel uses while it watches Registered members.
type Watching struct {
	Registered int
	CPU        float64 // of one core
	Memory     float64 // resident, in bytes
}

// Take adds the measurements of a run.
func (r *Results) Take(run Run, fresh *Results) {
	r.Runs = append(r.Runs, run)
	for _, b := range fresh.Beds {
		b.Run = run.ID
		r.Beds = put(r.Beds, b, func(o Bed) bool { return o.Family == b.Family && o.Name == b.Name },
			func(o Bed) bool { return o.Family == b.Family })
	}
	for _, s := range fresh.Systems {
		s.Run = run.ID
		r.Systems = put(r.Systems, s, func(o System) bool { return o.Family == s.Family && o.Bed == s.Bed && o.Setting == s.Setting },
			func(o System) bool { return o.Family == s.Family && o.Bed == s.Bed })
	}
	stamp := func(o *steady.Outcome) { o.Run = run.ID }
	r.Quiet = anew(r.Quiet, fresh.Quiet, stamp)
	r.Rolling = anew(r.Rolling, fresh.Rolling, stamp)
	r.Faults = anew(r.Faults, fresh.Faults, func(f *steady.Fault) { f.Run = run.ID })
	for _, o := range fresh.Scale {
		o.Run = run.ID
		r.Scale = put(r.Scale, o, func(old crowd.Outcome) bool { return old.Size == o.Size }, func(crowd.Outcome) bool { return true })
	}
	r.tidy()
}

// put replaces the element with the same key, or inserts after the last similar one.
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

// anew replaces all by the new results, if there are any, and notes the run in these.
func anew[E any](old, fresh []E, stamp func(*E)) []E {
	if len(fresh) == 0 {
		return old
	}
	fresh = slices.Clone(fresh)
	for i := range fresh {
		stamp(&fresh[i])
	}
	return fresh
}

// tidy drops runs without results.
func (r *Results) tidy() {
	used := map[string]bool{}
	for _, list := range [][]string{r.runsOf("beds"), r.runsOf("systems"), r.runsOf("far"), r.runsOf("quiet"), r.runsOf("rolling"), r.runsOf("faults"), r.runsOf("scale")} {
		for _, id := range list {
			used[id] = true
		}
	}
	r.Runs = slices.DeleteFunc(r.Runs, func(run Run) bool { return !used[run.ID] })
	slices.SortFunc(r.Runs, func(a, b Run) int { return strings.Compare(a.ID, b.ID) })
}

// runsOf lists the runs of a block.
func (r *Results) runsOf(block string) (ids []string) {
	switch block {
	case "beds":
		for _, b := range r.Beds {
			ids = append(ids, b.Run)
		}
	case "systems", "far":
		for _, s := range r.Systems {
			if s.mixed() == (block == "far") {
				ids = append(ids, s.Run)
			}
		}
	case "quiet":
		for _, o := range r.Quiet {
			ids = append(ids, o.Run)
		}
	case "rolling":
		for _, o := range r.Rolling {
			ids = append(ids, o.Run)
		}
	case "faults":
		for _, f := range r.Faults {
			ids = append(ids, f.Run)
		}
	case "scale":
		for _, o := range r.Scale {
			ids = append(ids, o.Run)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Names of the summary, its picture, and the page about settings and methods.
const (
	PageName    = "benchmarks.md"
	PictureName = "benchmarks.svg"
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

// Write writes the summary and the picture into one directory, and the methods into the one of the results.
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
	return os.WriteFile(filepath.Join(docs, PictureName), []byte(r.Picture()), 0o644)
}
