package mutation

import (
	"errors"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const tiny = "testdata/tiny/tiny.go"

// row returns a correct row, changed by edit.
func row(edit func(*Mutant)) Mutant {
	m := Mutant{Rule: "clamped", File: tiny, Old: "min(n, limit)", New: "n",
		Package: "./testdata/tiny", Guard: "TestClamp", Want: "not clamped: 5"}
	edit(&m)
	return m
}

// Every kind of mutant in one table: switched ones, several in one body, and those that need a build of their own.
func TestRun(t *testing.T) {
	t.Parallel()
	Run(t, []Mutant{
		row(func(m *Mutant) {}),
		row(func(m *Mutant) { m.Rule, m.New, m.Want = "not even", "min(n, limit+1)", "not clamped: 4" }),
		row(func(m *Mutant) {
			m.Rule, m.Old, m.New, m.Want = "a constant", "limit = 3", "limit = 2 * 3", "not clamped: 5"
		}),
		row(func(m *Mutant) {
			m.Rule, m.Old, m.New, m.Guard, m.Want = "one subtest", "s = -1", "s = 1", "TestSign/-7", "sign of -7 is 1"
		}),
		row(func(m *Mutant) {
			m.Rule, m.Old, m.New, m.Guard, m.Want = "labels", "break outer", "continue outer", "TestFirst", "not the first: 1, 0"
		}),
		row(func(m *Mutant) {
			m.Rule, m.Old, m.New, m.Guard, m.Want = "the last use of an import", "strings.TrimSpace(name)", "name", "TestGreet", `greeted "hello  you "`
		}),
		row(func(m *Mutant) {
			m.Rule, m.Old, m.New, m.Guard, m.Want, m.Seeds = "seeds", "s = 1", "s = n", "TestSeeds", "with seed 2", 3
		}),
		row(func(m *Mutant) {
			m.Rule, m.Old, m.New = "out of range", "func Clamp(n int) int { return min(n, limit) }", "func Clamp(n int) int { return n }"
		}),
		row(func(m *Mutant) { m.Rule, m.New = "two functions of one", "n }\nfunc clamp2() {" }),
	})
}

// Errors in a row are reported before anything is built.
func TestLoadReportsErrors(t *testing.T) {
	for want, edit := range map[string]func(*Mutant){
		"no Rule":                               func(m *Mutant) { m.Rule = "" },
		"no Guard":                              func(m *Mutant) { m.Guard = "" },
		"no Want: every failure would do":       func(m *Mutant) { m.Want = "" },
		"no Old":                                func(m *Mutant) { m.Old = "" },
		"fields Old and New are the same":       func(m *Mutant) { m.New = m.Old },
		"Seeds is -1, must not be negative":     func(m *Mutant) { m.Seeds = -1 },
		"Guard: error parsing regexp":           func(m *Mutant) { m.Guard = "(" },
		"Want: error parsing regexp":            func(m *Mutant) { m.Want = "(" },
		`Want "FAIL": every failure would do`:   func(m *Mutant) { m.Want = "FAIL" },
		`Want ".*": every failure would do`:     func(m *Mutant) { m.Want = ".*" },
		`Want "Clamp": every failure would do`:  func(m *Mutant) { m.Want = "Clamp" },
		"no such file":                          func(m *Mutant) { m.File = "nowhere.go" },
		`tiny.go has 0 times, not once: "nope"`: func(m *Mutant) { m.Old = "nope" },
		`tiny.go has 4 times, not once: "func"`: func(m *Mutant) { m.Old = "func" },
	} {
		t.Run(want, func(t *testing.T) {
			_, err := load([]Mutant{row(edit)})
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "row 1")
		})
	}
	_, err := load([]Mutant{row(func(*Mutant) {}), row(func(*Mutant) {}), row(func(m *Mutant) { m.Rule, m.Old = "x", "" })})
	require.ErrorContains(t, err, `row 2, "clamped": another row has the same rule`)
	require.ErrorContains(t, err, `row 3, "x": no Old`, "does not report all errors at once")
}

// workshop builds the target of the given mutants.
func workshop(t *testing.T, table ...Mutant) *target {
	mutants, err := load(table)
	require.NoError(t, err)
	all, err := targets(t.Context(), t.TempDir(), mutants)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, all[0].build(t.Context()))
	return all[0]
}

// Each of these rows has an error that shows only when the row is tried. The other rows are tried all the same.
func TestTryReportsErrors(t *testing.T) {
	t.Parallel()
	cases := []struct {
		want string // "": the row is correct
		row  Mutant
	}{
		{`"survives" (testdata/tiny/tiny.go): the mutant survives: TestClamp passes without this rule`,
			row(func(m *Mutant) { m.Rule, m.New = "survives", "min(limit, n)" })},
		{`the mutant dies for another reason than "not clamped: 9"`,
			row(func(m *Mutant) { m.Rule, m.Want = "another reason", "not clamped: 9" })},
		{`"does not build": the mutant does not build`,
			row(func(m *Mutant) { m.Rule, m.New = "does not build", "unheardOf" })},
		{"testdata/tiny/tiny.go:12: undefined: unheardOf",
			row(func(m *Mutant) { m.Rule, m.New = "says what does not build", "unheardOf" })},
		{"the mutant does not build",
			row(func(m *Mutant) { m.Rule, m.New = "a brace too many", "n }" })},
		{"", row(func(m *Mutant) { m.Rule = "good beside the bad" })},
	}
	var rows []Mutant
	for _, c := range cases {
		rows = append(rows, c.row)
	}
	target := workshop(t, rows...)
	for i, c := range cases {
		t.Run(c.row.Rule, func(t *testing.T) {
			said, err := target.try(t.Context(), target.mutants[i])
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, c.row.Want, said)
				require.NotContains(t, target.solo, target.mutants[i], "the mutant is missing from the common binary")
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestBaselineReportsErrors(t *testing.T) {
	t.Parallel()
	target := workshop(t, row(func(*Mutant) {}))
	_, err := target.baseline(t.Context(), guard{test: "TestFails"})
	require.ErrorContains(t, err, "the guard TestFails fails on the unmutated source")
	require.ErrorContains(t, err, "always")
	_, err = target.baseline(t.Context(), guard{test: "TestClam"})
	require.ErrorContains(t, err, `matches the guard "TestClam"`)
	_, err = target.baseline(t.Context(), guard{test: "TestSeeds", seeds: 5})
	require.NoError(t, err)
}

// Run fails, in a process of its own, for a guard that fails without a mutant, for the table's
// own test as a guard, and for a missing package.
func TestRunFails(t *testing.T) {
	t.Parallel()
	if os.Getenv("NELI_RUN_FAILS") != "" {
		Run(t, []Mutant{row(func(m *Mutant) { m.Guard = "TestFails" })})
		return
	}
	for _, tc := range []struct {
		env, want string
		tried     bool
	}{
		{"NELI_MUTANTS=", "no mutant was tried, as a guard fails without one", false},
		{"NELI_MUTANTS=only", "the mutant dies for another reason", true},
		{"NELI_MUTANT=1", "a guard's regexp matches the test of the table itself", false},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunFails$")
		cmd.Env = append(os.Environ(), "NELI_RUN_FAILS=1", tc.env)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), tc.want)
		require.Equal(t, tc.tried, strings.Contains(string(out), "clamped"), "a mutant was tried")
		require.Equal(t, tc.env == "NELI_MUTANTS=", strings.Contains(string(out), "unmutated"), "the guard was tried without one")
	}
	mutants, err := load([]Mutant{row(func(m *Mutant) { m.Package = "./nowhere" })})
	require.NoError(t, err)
	_, err = targets(t.Context(), t.TempDir(), mutants)
	require.ErrorContains(t, err, `package "./nowhere"`)
}

func TestJudge(t *testing.T) {
	mutants, err := load([]Mutant{row(func(*Mutant) {})})
	require.NoError(t, err)
	m, exit := mutants[0], &exec.ExitError{}
	_, err = m.judge("not clamped: 5\npanic: test timed out after 5m0s", exit)
	require.ErrorContains(t, err, "hangs")
	_, err = m.judge("not clamped: 5", errors.New("no such file"))
	require.ErrorContains(t, err, "could not be run")
	_, err = m.judge("not clamped: 5", nil)
	require.ErrorContains(t, err, "survives")
	said, err := m.judge("--- FAIL: TestClamp\n  not clamped: 5\n", exit)
	require.NoError(t, err)
	require.Equal(t, "not clamped: 5", said)
}

// The copies of a body keep the line numbers of the original, so that a failure can be looked up.
func TestOverlayKeepsLines(t *testing.T) {
	mutants, err := load([]Mutant{
		row(func(*Mutant) {}),
		row(func(m *Mutant) { m.Rule, m.Old, m.New = "lines", "s = -1", "s = 1" }),
	})
	require.NoError(t, err)
	files, solo := overlay(mutants)
	require.Empty(t, solo)
	path, err := filepath.Abs(tiny)
	require.NoError(t, err)
	require.Len(t, files, 2, "the file, and the switch's variable")
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, files[path], parser.ParseComments)
	require.NoError(t, err)
	line := func(text, what string) int {
		return 1 + strings.Count(text[:strings.Index(text, what)], "\n")
	}
	spliced := files[path]
	at := fset.File(file.Pos())
	for what, from := range map[string]string{"s = 1\n\tcase n > 0": "mutant2", "fmt.Sprintf": "tiny.go", "break outer": "tiny.go"} {
		p := fset.Position(at.Pos(strings.Index(spliced, what)))
		assert.Contains(t, p.Filename, from, what)
		original := strings.ReplaceAll(what, "s = 1\n\tcase", "s = -1\n\tcase")
		assert.Equal(t, line(mutants[0].source, original), p.Line, what)
	}
}

func TestSeedsOfTheEnvironment(t *testing.T) {
	t.Setenv("NELI_SEEDS", "50")
	for seeds, want := range map[int]int{0: 0, 20: 50, 80: 80} {
		mutants, err := load([]Mutant{row(func(m *Mutant) { m.Seeds = seeds })})
		require.NoError(t, err)
		g := mutants[0].guard()
		require.Equal(t, want, g.seeds)
		require.Equal(t, map[int]time.Duration{0: 5 * time.Minute, 20: 15 * time.Minute, 80: 5 * time.Minute}[seeds], g.limit())
	}
}

func TestPattern(t *testing.T) {
	require.Equal(t, "^(?:TestModel)$/^(?:drift2|jump2)$", guard{test: "TestModel/drift2|jump2"}.pattern())
}
