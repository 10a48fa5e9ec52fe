package mutation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A Mutant is one rule, with the change that removes it from the library.
type Mutant struct {
	Rule string // the rule, as a sentence; the subtest's name
	File string // a Go file, relative to the directory of the test that calls Run

	Old string // occurs exactly once in File
	New string // replaces Old; it may be empty, or lengthen a time

	Package string // the package of the guard, as an argument of go test; "": the calling test's
	Guard   string // regexp of the test, and of its subtests after slashes, each matched whole
	Want    string // regexp of what the guard must say, which shows why the rule is needed

	// Seeds is passed as NELI_SEEDS to the guard, and to its run on the unmutated source. 0 leaves
	// the guard's own number. A larger NELI_SEEDS in the environment of the table's test takes
	// precedence.
	Seeds int
}

// A mutant is a checked row and its place in the source.
type mutant struct {
	Mutant
	id     int // its number in the table, from 1; 0 stands for the unmutated source
	path   string
	source string // of the file, unmutated
	at     int    // where Old begins
	want   *regexp.Regexp
}

// mutated returns the whole file without the rule.
func (m *mutant) mutated() string {
	return m.source[:m.at] + m.New + m.source[m.at+len(m.Old):]
}

// load checks the table and reads the files that it names. It reports all errors at once.
func load(table []Mutant) ([]*mutant, error) {
	var (
		all    []*mutant
		faults []error
		named  = map[string]bool{}
	)
	for i, row := range table {
		m, err := row.load(i + 1)
		if err == nil && named[row.Rule] {
			err = errors.New("another row has the same rule")
		}
		named[row.Rule] = true
		if err != nil {
			faults = append(faults, fmt.Errorf("mutation: row %d, %q: %w", i+1, row.Rule, err))
		}
		all = append(all, m)
	}
	return all, errors.Join(faults...)
}

func (row Mutant) load(id int) (*mutant, error) {
	switch {
	case row.Rule == "":
		return nil, errors.New("no Rule")
	case row.Guard == "":
		return nil, errors.New("no Guard")
	case row.Want == "":
		return nil, errors.New("no Want: every failure would do")
	case row.Old == "":
		return nil, errors.New("no Old")
	case row.Old == row.New:
		return nil, errors.New("the fields Old and New are the same")
	case row.Seeds < 0:
		return nil, fmt.Errorf("field Seeds is %d, must not be negative", row.Seeds)
	}
	if _, err := regexp.Compile(row.Guard); err != nil {
		return nil, fmt.Errorf("field Guard: %w", err)
	}
	want, err := regexp.Compile(row.Want)
	if err != nil {
		return nil, fmt.Errorf("field Want: %w", err)
	}
	if top, _, _ := strings.Cut(row.Guard, "/"); want.MatchString("--- FAIL: " + top + " (0.00s)\nFAIL\n") {
		return nil, fmt.Errorf("field Want %q: every failure would do", row.Want)
	}
	path, err := filepath.Abs(row.File)
	if err != nil {
		return nil, err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(source), row.Old); n != 1 {
		return nil, fmt.Errorf("%s has %d times, not once: %q", row.File, n, row.Old)
	}
	return &mutant{row, id, path, string(source), strings.Index(string(source), row.Old), want}, nil
}
