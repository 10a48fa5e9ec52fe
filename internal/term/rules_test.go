package term

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// The rules of the table. Each row has a rule, the source text for it, the text without it, and
// the test that fails then.
var mutants = []mutation.Mutant{
	{Rule: "Leads looks at the term again after it has read the clock", File: "published.go",
		Old: "case again == of && young:", New: "case young:",
		Guard: "TestLeadsLooksAgainAfterTheClock", Want: `Not equal`},
	{Rule: "V is loaded before the clock is read", File: "published.go",
		Old: "v != nil && t.young(at, *v)\n		again", New: "v != nil && t.young(at, *of.line.v.Load())\n		again",
		Guard: "TestLeadsReadsVFirst", Want: "takes a newer V for a lapse"},
	{Rule: "LeadsAny looks again if the lowest unit has ended", File: "published.go",
		Old: "if l.lowest.Load() == lowest {", New: "if true {",
		Guard: "TestLeadsAnyMissesNoLedUnit", Want: "misses the highest unit, which is led throughout"},
	{Rule: "Leads does not take a shift for an end", File: "published.go",
		Old: "case again == nil || again == of || again.id != of.id:", New: "default:",
		Guard: "TestLeadsFollowsAShift", Want: "takes a move to another line for an end"},
	{Rule: "LeadsAny looks again if a unit was shifted meanwhile", File: "published.go",
		Old: "before%2 == 0 && t.shifts.Load() == before {", New: "true || before == 0 {",
		Guard: "TestLeadsAnyFollowsAShift", Want: "LeadsAny misses a unit that is shifted"},
	{Rule: "a shifted term is not announced again", File: "table.go",
		Old: "			e.delivered = to\n", New: "",
		Guard: "TestAShiftedTermGoesOn", Want: "peek|tells of a shift|nil pointer"},
	{Rule: "after the application was told of a term's end, it is not told of the term again", File: "collect.go",
		Old: "e.request == nil && !e.over:", New: "e.request == nil:",
		Guard: "TestEndedTermDoesNotComeBack", Want: "Acquired|Kind:"},
	{Rule: "Evidence returns the V by which it decided", File: "published.go",
		Old: "	return of.id, *by, at, true\n", New: "	_ = by\n	v, _ = t.V(0)\n	return of.id, v, at, true\n",
		Package: "../../nelitest", Guard: "TestSmallLogsReportHowLongATermLasts", Want: "is not positive"},
	{Rule: "an ended unit is withdrawn", File: "table.go",
		Old: "	t.withdraw(e)\n	if e.delivered == e.held {\n", New: "	if e.delivered == e.held {\n",
		Guard: "TestLeadsNeverShowsAnEndedTerm", Want: `led term \d+, token \d+, and \d+ was over`},
	{Rule: "losses come before acquisitions", File: "collect.go",
		Old: "of[i] != 0 && (first == 0 || of[i] < first)", New: "of[i] != 0 && (first == 0 || of[i] > first)",
		Guard: "TestTableAgreesWithTheModel", Want: "Not equal"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, mutants) }
