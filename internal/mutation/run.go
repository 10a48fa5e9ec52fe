package mutation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// limit is how long a guard may take, mutated or not, with the seeds of its row. With more seeds
// it may take proportionally longer.
const limit = 5 * time.Minute

// Run tests the table. It runs a subtest "unmutated" with each guard on the source as it is, then
// a subtest per row, named by its rule. Paths and packages are relative to the working directory,
// which is the directory of the calling test's package. With NELI_MUTANTS=only it leaves out
// "unmutated", for callers that run the guards otherwise.
//
// With -v each row reports how long it took, and what its guard said.
func Run(t *testing.T, table []Mutant) {
	t.Helper()
	if os.Getenv(activeEnv) != "" {
		t.Fatal("mutation: a guard's regexp matches the test of the table itself")
	}
	mutants, err := load(table)
	if err != nil {
		t.Fatal(err)
	}
	all, err := targets(t.Context(), t.TempDir(), mutants)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, target := range all {
		if err := target.build(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("built in %.1f s", time.Since(began).Seconds())

	if os.Getenv("NELI_MUTANTS") != "only" && !t.Run("unmutated", func(t *testing.T) { baselines(t, all) }) {
		t.Fatal("mutation: no mutant was tried, as a guard fails without one")
	}
	for _, target := range all {
		for _, m := range target.mutants {
			t.Run(m.Rule, func(t *testing.T) {
				t.Parallel()
				report(t, func() (string, error) { return target.try(t.Context(), m) })
			})
		}
	}
}

// baselines runs each guard on the source as it is.
func baselines(t *testing.T, all []*target) {
	for _, target := range all {
		for _, g := range target.guards() {
			t.Run(g.String(), func(t *testing.T) {
				t.Parallel()
				report(t, func() (string, error) { return target.baseline(t.Context(), g) })
			})
		}
	}
}

func report(t *testing.T, f func() (string, error)) {
	began := time.Now()
	said, err := f()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f s %s", time.Since(began).Seconds(), said)
}

// WantEnv is the environment variable in which a guard finds its row's Want. It is empty for the unmutated source.
const WantEnv = "NELI_WANT"

// repeatable makes guards that draw with rapid fail in the same way each time, with the first
// failure. A smaller failure found by shrinking may have another reason.
var repeatable = []string{"RAPID_SEED=1", "RAPID_SHRINKTIME=0s", "RAPID_NOFAILFILE=true"}

// A guard is a run of certain tests with a certain number of seeds.
type guard struct {
	test  string
	seeds int
	times int // the multiple of the row's seeds; 0: no more than those
}

func (g guard) limit() time.Duration { return limit * time.Duration(max(1, g.times)) }

func (g guard) String() string {
	if g.seeds == 0 {
		return g.test
	}
	return fmt.Sprintf("%s, %d seeds", g.test, g.seeds)
}

func (m *mutant) guard() guard {
	g := guard{test: m.Guard, seeds: m.Seeds}
	if more, err := strconv.Atoi(os.Getenv("NELI_SEEDS")); err == nil && m.Seeds > 0 && more > m.Seeds {
		g.seeds, g.times = more, (more+m.Seeds-1)/m.Seeds
	}
	return g
}

// guards returns the guards of the target, each once.
func (t *target) guards() []guard {
	var all []guard
	seen := map[guard]bool{}
	for _, m := range t.mutants {
		if g := m.guard(); !seen[g] {
			seen[g] = true
			all = append(all, g)
		}
	}
	return all
}

// baseline runs a guard on the unmutated source.
func (t *target) baseline(ctx context.Context, g guard) (string, error) {
	out, err := t.run(ctx, t.binary, g, 0, "")
	if err != nil {
		return "", fmt.Errorf("the guard %s fails on the unmutated source: %w\n%s", g, err, tail(out))
	}
	if strings.Contains(out, "no tests to run") {
		return "", fmt.Errorf("no test of %s matches the guard %q", t.pkg, g.test)
	}
	return "", nil
}

// try runs the guard of a mutant, and returns the line that has the wanted reason.
func (t *target) try(ctx context.Context, m *mutant) (string, error) {
	binary, err := t.binaryOf(ctx, m)
	if err != nil {
		return "", fmt.Errorf("%q: %w", m.Rule, err)
	}
	out, err := t.run(ctx, binary, m.guard(), m.id, m.Want)
	said, err := m.judge(out, err)
	if err != nil {
		return "", fmt.Errorf("%q (%s): %w", m.Rule, m.File, err)
	}
	return said, nil
}

// judge returns an error unless the mutant died as it should. failure is how the guard's process ended.
func (m *mutant) judge(out string, failure error) (string, error) {
	said := m.want.FindString(out)
	var exit *exec.ExitError
	switch {
	case failure == nil:
		return "", fmt.Errorf("the mutant survives: %s passes without this rule\n%s", m.Guard, tail(out))
	case !errors.As(failure, &exit):
		return "", fmt.Errorf("the guard could not be run: %w\n%s", failure, tail(out))
	case strings.Contains(out, "panic: test timed out after"):
		return "", fmt.Errorf("the guard %s hangs\n%s", m.Guard, tail(out))
	case said == "":
		return "", fmt.Errorf("the mutant dies for another reason than %q\n%s", m.Want, tail(out))
	}
	return said, nil
}

// run runs a guard with the mutant id. want tells the guard which failure is wanted.
func (t *target) run(ctx context.Context, binary string, g guard, id int, want string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, g.limit()+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run="+g.pattern(), "-test.failfast",
		"-test.timeout="+g.limit().String())
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), activeEnv+"="+strconv.Itoa(id), WantEnv+"="+want)
	cmd.Env = append(cmd.Env, repeatable...)
	if g.seeds > 0 {
		cmd.Env = append(cmd.Env, "NELI_SEEDS="+strconv.Itoa(g.seeds))
	}
	cmd.WaitDelay = time.Second // a child process of the guard may hold its output open
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, context.Cause(ctx))
}

// pattern returns a regexp that matches each element of the guard as a whole.
func (g guard) pattern() string {
	elements := strings.Split(g.test, "/")
	for i, e := range elements {
		elements[i] = "^(?:" + e + ")$"
	}
	return strings.Join(elements, "/")
}

// tail returns the end of a long output.
func tail(out string) string {
	const most = 4 << 10
	if len(out) <= most {
		return out
	}
	return "…" + out[len(out)-most:]
}
