// Package judge lets TLC decide whether the specification in spec allows what code did. Tests write
// traces: what each process did and believed, an event at a time. A module of spec replays them.
package judge

import (
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// Unsaid is a duration that a record does not state.
const Unsaid = time.Duration(-1)

// Jar returns the jar of TLC, or skips the test: make spec runs it.
func Jar(t *testing.T) string {
	t.Helper()
	jar := os.Getenv("NELI_TLC")
	if jar == "" {
		t.Skip("NELI_TLC does not name the jar of TLC: make spec runs it")
	}
	return jar
}

// Traces fails the test unless a module of spec explains all traces. A trace is a list of events. leases
// has the T of each process, by its name in the traces. rho is the ρ of all processes. more defines what
// else the module needs.
func Traces(t *testing.T, module string, rho float64, leases map[string]time.Duration, traces []string, more ...string) {
	t.Helper()
	if err := Judge(t, module, rho, margin, leases, traces, more...); err != nil {
		t.Fatal(err)
	}
}

// margin is the margin of clock.Wait.
const margin = time.Millisecond

// Judge is Traces, but returns what the specification refuses. margin is what W(T) adds to the wait for
// clocks' rates: 0 allows waits that are shorter than clock.Wait by its margin.
func Judge(t *testing.T, module string, rho float64, margin time.Duration, leases map[string]time.Duration, traces []string, more ...string) error {
	t.Helper()
	jar := Jar(t)
	var names, waits []string
	longest := []time.Duration{0, clock.Tmax}
	for _, name := range slices.Sorted(maps.Keys(leases)) {
		names = append(names, fmt.Sprintf("%q :> %d", name, leases[name].Microseconds()))
		longest = append(longest, leases[name])
	}
	slices.Sort(longest)
	for _, d := range slices.Compact(longest) { // W(d), not by the code under test
		waits = append(waits, fmt.Sprintf("%d :> %.0f", d.Microseconds(), math.Ceil(float64(d.Microseconds())*(1+rho)/(1-rho))+float64(margin.Microseconds())))
	}
	root, err := filepath.Abs(".")
	for err == nil && !exists(filepath.Join(root, "spec", module+".tla")) && root != filepath.Dir(root) {
		root = filepath.Dir(root)
	}
	dir := filepath.Join(t.TempDir(), "spec")
	text := fmt.Sprintf("---- MODULE Traces ----\nEXTENDS TLC, Integers\nLeases == %s\nWaits == %s\nTraces == <<\n<<%s>>\n>>\n%s\n====\n",
		strings.Join(names, " @@ "), strings.Join(waits, " @@ "), strings.Join(traces, ">>,\n<<"), strings.Join(more, "\n"))
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "spec"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Traces.tla"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "java", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir="+dir, "-Xmx2g", "-Xss64m", "-XX:+UseSerialGC", "-cp", jar, "tlc2.TLC", "-nowarning", "-workers", "1", module+".tla")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "No error has been found") {
		refused := regexp.MustCompile(`(?s)<< *"refused".*?\n(?:Error|$)`).FindString(string(out))
		if refused == "" {
			refused = string(out[max(0, len(out)-2000):])
		}
		return fmt.Errorf("the specification does not allow this (%v):\n%s", err, refused)
	}
	return nil
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

// Bool, Micros and Roles write a value in TLA+: a duration rounded up to microseconds, and roles, which
// count from 1 there.
func Bool(b bool) string { return strings.ToUpper(fmt.Sprint(b)) }

// Micros: see Bool.
func Micros(d time.Duration) int64 {
	if d == Unsaid {
		return -1
	}
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

// Roles: see Bool.
func Roles(roles []int32) string {
	var s []string
	for _, role := range roles {
		s = append(s, fmt.Sprint(role+1))
	}
	return Set(s)
}

// Grants writes the pairs ⟨role, token⟩ of roles with one token.
func Grants(token int64, roles []int32) (pairs []string) {
	for _, role := range roles {
		pairs = append(pairs, fmt.Sprintf("<<%d, %d>>", role+1, token))
	}
	return pairs
}

// Set writes a set.
func Set(elements []string) string { return "{" + strings.Join(elements, ", ") + "}" }
