package elector

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

var scratch = []mutation.Mutant{
	{Rule: "d0", File: "handovers.go", Old: "\tif finished {\n\t\tto.finish", New: "\tif finished && since < 0 {\n\t\tto.finish", Guard: "TestHandoversAreConsistent", Want: `Error Trace|rapid\] failed`},
	{Rule: "d1", File: "announcements.go", Old: "\t\tmono(c.announcements.snapshotAt)\n", New: "", Guard: "TestAChannelSaysNothingBeforeItIsDue/a_newcomer", Want: `Error Trace|rapid\] failed`},
	{Rule: "d2", File: "shard_claims.go", Old: "time.Duration(rank)+s.set", New: "time.Duration(0*rank)+s.set", Guard: "TestAShardThatKnowsNothing", Want: `Error Trace|rapid\] failed`},
	{Rule: "d3", File: "shard_claims.go", Old: "\tif len(out) > 0 {\n\t\ts.nomination.claimed(now)", New: "\tif len(out) > 9 {\n\t\ts.nomination.claimed(now)", Guard: "TestAShardNotesThatItHasClaimed", Want: `Error Trace|rapid\] failed`},
	{Rule: "d4", File: "shard_claims.go", Old: "if int(shares[s.role(role)]) == me {\n\t\t\tours", New: "if int(shares[s.role(role)]) == me+1 {\n\t\t\tours", Guard: "TestAShardClaimsItsOwnShareFirst", Want: `Error Trace|rapid\] failed`},
	{Rule: "d5", File: "stats.go", Old: "\ts.recountEach(slices.Values(roles), now)", New: "\ts.recountEach(slices.Values(roles[:0]), now)", Guard: "TestAShardCountsVacancies", Want: `Error Trace|rapid\] failed`},
	{Rule: "d6", File: "stats.go", Old: "\tif !caughtUp(s.channels) {\n\t\treturn\n\t}\n", New: "", Guard: "TestAHolderIsBack|TestAShardCountsVacancies", Want: `Error Trace|rapid\] failed`},
	{Rule: "d7", File: "stats.go", Old: "\t\ts.vacancyStats = vacancyStats{at: now.Raw}\n", New: "", Guard: "TestAShardCountsVacancies", Want: `Error Trace|rapid\] failed`},
	{Rule: "d8", File: "stats.go", Old: "\tv.at = now.Raw", New: "\tv.at = max(v.at, newerUntil)", Guard: "TestLeaderlessTimeDoesNotDependOnLooks", Want: `Error Trace|rapid\] failed`},
	{Rule: "d9", File: "stats.go", Old: "\tif since != e.since {\n\t\te.count()\n", New: "\tif since != e.since && e.n == 0 {\n\t\te.count()\n", Guard: "TestVacanciesThatEndTogetherAreCountedTogether", Want: `Error Trace|rapid\] failed`},
	{Rule: "d10", File: "terms.go", Old: "\ts.end(d.superseded, term.Superseded)", New: "\ts.end(d.superseded, term.Lapsed)", Guard: "TestWhyATermEnds", Want: `Error Trace|rapid\] failed`},
	{Rule: "d11", File: "terms.go", Old: "\ts.wanted = false\n", New: "", Guard: "TestATermBegins", Want: `Error Trace|rapid\] failed`},
	{Rule: "d12", File: "terms.go", Old: "s.claims.designate(ev.Changed, r, s.set.Process)", New: "s.claims.designate(ev.Changed, r, \"\")", Guard: "TestATermBegins", Want: `Error Trace|rapid\] failed`},
	{Rule: "d13", File: "terms.go", Old: "\tif s.main.beatAt < now.Mono {", New: "\tif s.main.beatAt < 0 {", Guard: "TestATermBegins", Want: `Error Trace|rapid\] failed`},
	{Rule: "d14", File: "terms.go", Old: "\t\t\ts.recountOf(s.lease.RolesOf(id), now)\n", New: "", Guard: "TestAHolderIsBack", Want: `Error Trace|rapid\] failed`},
	{Rule: "d15", File: "terms.go", Old: "\ts.main.pacing.thinkAt = 0\n\ts.main.ann", New: "\ts.main.ann", Guard: "TestWhatIsLearnedIsPlannedAnew", Want: `Error Trace|rapid\] failed`},
	{Rule: "d16", File: "terms.go", Old: "\ts.standings.learned()\n", New: "", Guard: "TestWhatIsLearnedIsPlannedAnew", Want: `Error Trace|rapid\] failed`},
}

func TestScratch(t *testing.T) { mutation.Run(t, scratch) }
