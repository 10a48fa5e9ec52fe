// Package needs is for tests that need more than Go from the machine: root, cgroups, namespaces.
package needs

import (
	"os"
	"testing"
)

// Variable is the environment variable that forbids tests to be skipped. CI sets it.
const Variable = "NELI_REQUIRE_ROOT"

// Missing skips a test that needs what this machine lacks. It fails the test if Variable is set.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(Variable) != "" {
		t.Fatalf("%s is set, and this machine lacks %s", Variable, what)
	}
	t.Skipf("needs %s: run make cli as root on Linux with cgroup v2", what)
}
