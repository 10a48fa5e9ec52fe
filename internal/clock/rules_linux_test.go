package clock

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// Each row has a rule, the source text for it, the text without it, and the test that fails then.
var rules = []mutation.Mutant{
	{Rule: "the raw clock is the one that nobody slews", File: "system_linux.go",
		Old: "gettime(unix.CLOCK_MONOTONIC_RAW,", New: "gettime(unix.CLOCK_MONOTONIC,",
		Guard: "TestEachReadingComesFromItsOwnClock", Want: "the raw clock is the one that nobody slews"},
	{Rule: "the boot clock goes on in a suspension", File: "system_linux.go",
		Old: "gettime(unix.CLOCK_BOOTTIME,", New: "gettime(unix.CLOCK_MONOTONIC,",
		Guard: "TestEachReadingComesFromItsOwnClock", Want: "the boot clock goes on in a suspension"},
	{Rule: "a glance reads the wall clock", File: "system.go",
		Old: "Instant{Mono: Mono(t.Sub(epoch)), Wall: Wall(t.UnixNano())}", New: "Instant{Mono: Mono(t.Sub(epoch))}",
		Guard: "TestGlanceReadsBothOrdinaryClocks", Want: "the wall clock of a glance"},
	{Rule: "the simulated clock is used in a bubble only", File: "system.go",
		Old: "d < -time.Hour || d > time.Hour", New: "d < -time.Hour || d < time.Hour",
		Guard: "TestSystemReadsAllClocks", Want: "the kernel's boot clock is not read"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, rules) }
