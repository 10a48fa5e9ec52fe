// Package report writes what was measured: a page with tables, and a picture.
package report

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goneli/neli/bench/crowd"
	"github.com/goneli/neli/bench/idle"
	"github.com/goneli/neli/bench/steady"
	"github.com/goneli/neli/bench/trial"
)

// Results are kept, so that the page can be written anew without measuring anew.
type Results struct {
	Command  string
	Date     string
	Took     string
	Machine  string
	Versions []string
	N, Few   int
	Window   string // of idle groups
	Beds     []Bed
	Systems  []System
	Quiet    []steady.Outcome `json:",omitempty"`
	Rolling  []steady.Outcome `json:",omitempty"`
	Scale    []crowd.Outcome  `json:",omitempty"` // one of each size
}

// Bed is what was measured of servers alone.
type Bed struct {
	Family, Name string
	Alone        *idle.Usage `json:",omitempty"` // no group at all
	RoundTrips   []float64   `json:",omitempty"` // ms; Kafka
}

// System is what was measured of one.
type System struct {
	Family, Bed, Setting string
	Lease                float64 // nominal, ms
	Timeout              float64 `json:",omitempty"` // T, if the aims are about it, ms
	*trial.Results
	Idle []idle.Usage `json:",omitempty"`
}

// Names of the files of a page.
const (
	PageName    = "benchmarks.md"
	PictureName = "benchmarks.svg"
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

// Write writes the page and the picture into a directory.
func (r *Results) Write(dir string) error {
	page, err := r.Page()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, PageName), []byte(page), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, PictureName), []byte(r.Picture()), 0o644)
}
