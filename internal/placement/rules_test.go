package placement

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// The rules by which leaders are chosen. Breaking one does not make two leaders, but roles may go
// to and fro, wait for nobody, or gather at one member.
var mutants = []mutation.Mutant{
	// Which member should have a role at all.
	{Rule: "a role goes to a member that prefers it most", File: "classes.go",
		Old: "case len(out) == 0 || v > top:", New: "case len(out) == 0:",
		Guard: "TestDeserving", Want: `role 0`},
	{Rule: "a Preference replaces the priority", File: "plan.go",
		Old: "	if role < len(c.Prefs) {\n", New: "	if role < len(c.Prefs) && false {\n",
		Guard: "TestDeserving", Want: `role 1`},
	{Rule: "no member gets a role that it does not want", File: "classes.go",
		Old: "		if role >= w.Roles {\n			continue\n		}\n		switch", New: "		switch",
		Guard: "TestMovesWithDifferentRoles", Want: `the taker does not want it|roles that nobody steady wants have moved`},
	{Rule: "the order in which members are known does not matter", File: "plan.go",
		Old: "return cmp.Compare(a.ID, b.ID) })\n	p.who =", New: "return cmp.Compare(a.Roles, b.Roles) })\n	p.who =",
		Guard: "TestAllProcessesDecideAlike", Want: `Not equal`},

	// Rendezvous hashing.
	{Rule: "each role has an order of members of its own", File: "hash.go",
		Old: "return hi ^ lo", New: "return candidate + 0*(hi^lo)",
		Guard: "TestRankSpreads", Want: `Max difference between 250`},
	{Rule: "ids that differ in their last place only are ordered differently", File: "hash.go",
		Old: "return finish(h.Sum64())", New: "return h.Sum64()",
		Guard: "TestRendezvousSpreads/consecutive", Want: `is not less than or equal to "9"|member \d+`},
	{Rule: "roles on which the taker comes first move first", File: "moves.go",
		Old: "	rest, given := l.preferred(roles, n)\n", New: "	rest, given := roles, 0\n",
		Guard: "TestMovesAtScale", Want: `hardly more than the hundredth`},
	{Rule: "preferred members claim before others", File: "plan.go",
		Old: "if s := score(p.hash[i], bucket); v > mine || s > top", New: "if s := score(p.hash[i], bucket); s > top",
		Guard: "TestRank", Want: `is not less than|have the same rank`},

	// Bounded loads.
	{Rule: "nobody gets more than an equal share", File: "assign.go",
		Old: "each := int32(total / max(1, len(members)))", New: "each := int32(total)",
		Guard: "TestAssignLevelsTheFirstElection", Want: `is not less than or equal to "1"`},
	{Rule: "no member gets two roles of the remainder", File: "fill.go",
		Old: "		f.spare[i] = false\n", New: "",
		Guard: "TestAssignLevelsTheFirstElection", Want: `is not less than or equal to "1"`},
	{Rule: "the roles that a member holds count for its share", File: "assign.go",
		Old: "load[i] = max(0, each-load[i])", New: "load[i] = each",
		Guard: "TestAssignPassesOverMembersWithTheirShare", Want: `\[\]int\{100, 100\}`},
	{Rule: "a role that is vacant counts for nobody's share", File: "assign.go",
		Old: "h >= 0 && !vacant[role] {", New: "h >= 0 {",
		Guard: "TestAssignTreatsListedRolesAsVacant", Want: `expected: 10`},

	// Caps.
	{Rule: "nobody is given more than its cap at a cold start", File: "caps.go",
		Old: "			room[i] = min(n, max(0, m-all[i]))\n", New: "",
		Guard: "TestAssignKeepsCaps", Want: `more than the cap`},
	{Rule: "what one class takes of a cap is missing in the next, when vacant roles are assigned", File: "caps.go",
		Old: "		all[i] += n\n", New: "",
		Guard: "TestAssignKeepsCaps", Want: `more than the cap`},
	{Rule: "a member above its cap gives back", File: "caps.go",
		Old: "		return max(0, has-(b.planned[i]-w.Max))\n", New: "		return has\n",
		Guard: "TestMovesKeepCaps", Want: `more than the cap`},
	{Rule: "nobody is handed more than its cap", File: "caps.go",
		Old: "		return min(total, has+max(0, w.Max-b.reserved[i]))\n", New: "		return total\n",
		Guard: "TestMovesNeverExceedACap", Want: `more than the cap`},
	{Rule: "what one class takes of a cap is missing in the next, when roles move", File: "caps.go",
		Old: "		b.reserved[i] += max(0, quota[i]-has[i])\n", New: "",
		Guard: "TestMovesNeverExceedACap", Want: `more than the cap`},
	{Rule: "what exceeds all caps goes to those with least", File: "caps.go",
		Old: "		left = l.overflow(left, has, quota, b)\n", New: "",
		Guard: "TestPreferredMembersAreFilledFirst", Want: `all are full`},
	{Rule: "a tenth more than another is not worth a move, with caps", File: "caps.go",
		Old: "	if sum != should || most-least > l.tolerance(should/len(tier)) {", New: "	if sum != should || most > least {",
		Guard: "TestMovesHaveHysteresisWithCaps", Want: `105 and 95`},
	{Rule: "a member at its cap is not behind", File: "caps.go",
		Old: "if has[i] < room[i] && (l.plan", New: "if (l.plan",
		Guard: "TestMovesHaveHysteresisWithCaps", Want: `a member at its cap`},
	{Rule: "a tenth more is not worth a move above all caps", File: "caps.go",
		Old: "most-least <= l.tolerance(most) {", New: "most == least {",
		Guard: "TestMovesHaveHysteresisWithCaps", Want: `52 and 48`},

	// Moves.
	{Rule: "on demand members become level", File: "moves.go",
		Old: "	return p.moves(me, holders, movable, limit, true)\n", New: "	return p.moves(me, holders, movable, limit, false)\n",
		Guard: "TestLevelHasNoTolerance", Want: `differ by more than one`},
	{Rule: "a tenth more than another is not worth a move", File: "moves.go",
		Old: "int(most-least) > l.tolerance(each)", New: "int(most-least) > 0",
		Guard: "TestMovesHaveHysteresis", Want: `105 and 95`},
	{Rule: "the members that hold most keep the remainder", File: "moves.go",
		Old: "		if n < rest {\n", New: "		if n >= len(byLoad)-rest {\n",
		Guard: "TestMovesHaveHysteresis", Want: `never ends`},
	{Rule: "no two givers choose the same room", File: "moves.go",
		Old: "if i < l.me {", New: "if i < 0*l.me {",
		Guard: "TestMovesOfSeveralMisplacedRoles", Want: `expected: (0|20)`},
	{Rule: "a member that is not steady gets nothing", File: "moves.go",
		Old: "			if steady {", New: "			if steady || true {",
		Guard: "TestMovesWaitUntilAMemberIsSteady", Want: `a member that is not steady gets roles`},
	{Rule: "kept room gets its part of the roles handed over", File: "moves.go",
		Old: "if (steady || !lost) && ", New: "if steady && ",
		Guard: "TestMovesWithViewsThatDifferInOneSteadyMember", Want: `a member got more than its share`},
	{Rule: "room is kept for a member that will soon be steady", File: "moves.go",
		Old: "if w.has++; !w.in {", New: "if w.has++; !w.in && l.plan.who[h].Steady {",
		Guard: "TestMovesWaitUntilAMemberIsSteady", Want: `does not leave a third for b`},
	{Rule: "roles that have to move do not wait for kept room", File: "moves.go",
		Old: "raised := l.raise(byLoad)", New: "raised := len(byLoad) == 0 && l.raise(byLoad)",
		Guard: "TestMisplacedRolesMoveAtOnce", Want: `does not move all at once`},
	{Rule: "a member that deserves a role more keeps it", File: "moves.go",
		Old: "case how == more || !movable(role):", New: "case !movable(role):",
		Guard: "TestMovesKeepRolesDeservedMore", Want: `expected: (15|\[\]int\{0, 10\})`},
	{Rule: "a role that may not move stays", File: "moves.go",
		Old: "case how == more || !movable(role):", New: "case how == more:",
		Guard: "TestMovesSkipFixedRoles", Want: `may not move`},
	{Rule: "no more roles move at a time than the limit", File: "moves.go",
		Old: "	if mine <= l.left {\n", New: "	if mine <= l.left || true {\n",
		Guard: "TestMovesServeSeveralTakersAtOnce", Want: `should have 5 item`},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, mutants) }
