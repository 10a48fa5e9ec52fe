package job

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// What the elector does for a command beside its guards.
var mutants = []mutation.Mutant{
	{Rule: "orphans are reaped", File: "job_linux.go",
		Old: "	defer guard.Reap(k.has)()\n", New: "",
		Guard: "TestOrphansAreReaped", Want: "the orphan is reaped"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, mutants) }
