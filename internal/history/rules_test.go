package history

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// proofRules are what a proof checks. The last rows break rules of the lease, which the proof must notice.
var proofRules = []mutation.Mutant{
	{Rule: "offsets grow", File: "part.go", Old: "r.Offset > p.last.Offset && r.Read", New: "r.Read",
		Guard: "TestBrokenLogs", Want: `should have 1 item\(s\), but has 0`},
	{Rule: "a record's Read is below its own offset", File: "part.go", Old: " && r.Read < r.Offset", New: "",
		Guard: "TestBrokenLogs", Want: `should have 1 item\(s\), but has 0`},
	{Rule: "a Claim comes after its wait", File: "prove.go", Old: "waited < clock.Hold(t)-rounding", New: "waited < 0",
		Guard: "TestBrokenLogs", Want: `should have 1 item\(s\), but has 0`},
	{Rule: "a record after the evidence does not show the wait", File: "prove.go", Old: "r.Offset >= evidence.Offset || ", New: "r.Offset == claim.Offset || ",
		Guard: "TestSimulatedLogsProveTheRules", Package: "../lease", Want: `was \[wait: `},
	{Rule: "a Release names only roles its session held", File: "prove.go", Old: "if !ok || p.h.terms[i].session != r.Session {", New: "if !ok {\n				continue\n			}\n			if p.h.terms[i].session != r.Session {",
		Guard: "TestBrokenLogs", Want: `should have 1 item\(s\), but has 0`},
	{Rule: "a Release names no term whose end its sender had read", File: "prove.go", Old: "t.EndedAt > 0 && ", New: "t.EndedAt < 0 && ",
		Guard: "TestBrokenLogs", Want: `should have 1 item\(s\), but has 0`},
	{Rule: "a Snapshot equals the fold at its Read", File: "../lease/replay.go", Old: "case r.Kind == Snapshot && ", New: "case false && ",
		Guard: "TestBrokenLogs", Want: `should have 1 item\(s\), but has 0`},
	{Rule: "only a session that holds something sends Beats", File: "../lease/replay.go", Old: "case r.Kind == Beat && ", New: "case false && ",
		Guard: "TestBrokenLogs", Want: `should have 1 item\(s\), but has 0`},
	{Rule: "a Claim comes after the wait for a record of a newer version", File: "prove.go", Old: "case !r.Fresh:", New: "case false:",
		Guard: "TestOtherRecordsHaveNoEffect", Want: `should have 1 item\(s\), but has 0`},
	{Rule: "lease: a Claim wins a role that is free, or whose holder's evidence it had read", File: "../lease/fold.go", Old: "h == nil || r.Read >= h.Last", New: "h == nil || r.Read >= 0",
		Guard: "TestSimulatedLogsProveTheRules", Package: "../lease", Want: `was \[evidence: `},
	{Rule: "lease: a Release frees only named terms", File: "../lease/fold.go", Old: "h != nil && h.Session == r.Session && f.tokens[role] == g.Token", New: "h != nil",
		Guard: "TestSimulatedLogsProveTheRules", Package: "../lease", Want: `was \[overlap: `},
	{Rule: "lease: a token is the offset of its Claim", File: "../lease/fold.go", Old: "Last: o}, o, won, now)", New: "Last: o}, max(0, r.Read), won, now)",
		Guard: "TestSimulatedLogsProveTheRules", Package: "../lease", Want: `was \[overlap: `},
	{Rule: "lease: a claimant waits", File: "../lease/make.go", Old: "l.own.claiming.has(role) || now.Raw < l.FreeAt(role)", New: "l.own.claiming.has(role)",
		Guard: "TestSimulatedLogsProveTheRules", Package: "../lease", Want: `was \[wait: `},
}

func TestProofNeedsEveryRule(t *testing.T) { mutation.Run(t, proofRules) }
