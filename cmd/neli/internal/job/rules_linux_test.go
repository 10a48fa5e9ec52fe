package job

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// mutants are the rules that the elector follows for a command, besides those of its guards.
var mutants = []mutation.Mutant{
	{Rule: "orphans are reaped", File: "job_linux.go",
		Old: "	defer guard.Reap(k.has)()\n", New: "",
		Guard: "TestOrphansAreReaped", Want: "the orphan is reaped"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, mutants) }
