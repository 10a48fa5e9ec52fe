package term

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// What the table rests on. Each row is a rule, the text that has it, what stands there
// without it, and the test that says why it is needed.
var mutants = []mutation.Mutant{
	{Rule: "leadership is looked at again after the clock was read", File: "published.go",
		Old: "case again == of && young:", New: "case young:",
		Guard: "TestLeadsLooksAgainAfterTheClock", Want: `Not equal`},
	{Rule: "V is loaded before the clock is read", File: "published.go",
		Old: "v != nil && t.young(at, *v)\n		again", New: "v != nil && t.young(at, *of.line.v.Load())\n		again",
		Guard: "TestLeadsReadsVFirst", Want: "V that moves meanwhile is no lapse"},
	{Rule: "who asks for any looks again if the lowest has ended", File: "published.go",
		Old: "if l.lowest.Load() == lowest {", New: "if true {",
		Guard: "TestLeadsAnyMissesNothing", Want: "the highest unit is led throughout"},
	{Rule: "a shift is not taken for an end", File: "published.go",
		Old: "case again == nil || again == of || again.id != of.id:", New: "default:",
		Guard: "TestLeadsFollowsAShift", Want: "a unit that moves to another line stays led"},
	{Rule: "who asks for any looks again if a unit was shifted meanwhile", File: "published.go",
		Old: "before%2 == 0 && t.shifts.Load() == before {", New: "true || before == 0 {",
		Guard: "TestAShiftIsNoGap", Want: "nothing led while it is shifted"},
	{Rule: "the application knows of a term that was shifted", File: "table.go",
		Old: "			e.delivered = to\n", New: "",
		Guard: "TestAShiftedTermGoesOn", Want: "peek|nothing to be told|nil pointer"},
	{Rule: "what the application was told is over is not told again", File: "collect.go",
		Old: "e.request == nil && !e.over:", New: "e.request == nil:",
		Guard: "TestWhatWasToldOverStaysOver", Want: "Acquired|Kind:"},
	{Rule: "how long a term lasts is told by the V that was looked at", File: "published.go",
		Old: "	return of.id, *by, at, true\n", New: "	_ = by\n	v, _ = t.V(0)\n	return of.id, v, at, true\n",
		Package: "../../nelitest", Guard: "TestSmallLogsTellHowLongATermLasts", Want: "is not positive"},
	{Rule: "an end withdraws", File: "table.go",
		Old: "	t.withdraw(e)\n	if e.delivered == e.held {\n", New: "	if e.delivered == e.held {\n",
		Guard: "TestLeadsBesideTheArbiter", Want: `led term \d+, token \d+, and \d+ was over`},
	{Rule: "losses come before acquisitions", File: "collect.go",
		Old: "of[i] != 0 && (first == 0 || of[i] < first)", New: "of[i] != 0 && (first == 0 || of[i] > first)",
		Guard: "TestTableIsTheModel", Want: "Not equal"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, mutants) }
