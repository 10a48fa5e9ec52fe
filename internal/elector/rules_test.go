package elector

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// What a Node on small logs rests on, beside package quorum. The rules of a single log have
// their rows in the root package, as the whole library shows them.
var rules = []mutation.Mutant{
	{Rule: "a late answer of a former incarnation is not looked at", File: "small.go",
		Old: "	case e.ID != p.id:\n", New: "	case e.ID == \"\":\n",
		Guard: "TestALateAnswerOfAFormerIncarnationIsNotLookedAt", Want: "Should be false|Not equal"},
	{Rule: "a record goes to the incarnation that its sender has read", File: "node.go",
		Old: "Append{p.index, p.id, r}", New: "Append{p.index, p.id[:0], r}",
		Guard: "TestARecordGoesToTheIncarnationThatWasRead", Want: "Not equal"},
	{Rule: "a record for another incarnation is none of this one's", File: "node.go",
		Old: "		c.Log = id\n", New: "		_ = c.Log\n",
		Guard: "TestARecordForAnotherIncarnationIsSkipped", Want: "record of another log: a copy or mirror"},
	{Rule: "a term follows the logs that sustain it", File: "small.go",
		Old: "	n.shiftSmall(p, shifted)\n", New: "	_ = shifted\n",
		Package: "../../nelitest", Guard: "TestSmallLogsMayFailOneAtATime", Want: "should not contain"},
	{Rule: "a handover on small logs is over when enough of them say so", File: "rebalance.go",
		Old: "		ours = held && g.Session == n.quorum.Session()\n", New: "",
		Package: "../../nelitest", Guard: "TestSmallLogsTransferARole", Want: "another member claimed first"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, rules) }
