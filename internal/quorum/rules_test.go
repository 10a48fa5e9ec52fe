package quorum

import (
	"slices"
	"testing"

	"github.com/goneli/neli/internal/mutation"
	"github.com/goneli/neli/internal/seeded"
)

// These are the numbers of seeds that the guards run, with a mutant or without. The first half is
// enough to break each rule below.
const (
	plainSeeds = 1200
	huntSeeds  = 400
	lossySeeds = 200
)

// The rules of the majority, each with a mutant that removes it. The rules of a single log are
// guarded in internal/lease.
var rules = []mutation.Mutant{
	// Tokens.
	{Rule: "reading back an own valid Claim lifts the ballot above all noted ones", File: "quorum.go",
		Old: "	if ev.Won {\n		q.lift(q.seen + 1)\n	}\n", New: "",
		Guard: "TestSimulation/hunt", Want: `seed \d+: token went back`, Seeds: huntSeeds},
	{Rule: "a fresh claim starts from the wall clock", File: "make.go",
		Old: "	if fresh {\n		q.lift(micros(now))\n	}\n", New: "	_ = fresh\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: token went back`, Seeds: plainSeeds},
	{Rule: "every fresh claim starts from the wall clock, not only the first one", File: "make.go",
		Old: "	if fresh {\n", New: "	if fresh && q.bal < 1<<40 {\n",
		Guard: "TestEveryFreshClaimStartsFromTheWallClock", Want: "token went back"},
	{Rule: "a Snapshot has the largest ballot that its sender has seen", File: "make.go",
		Old: "			records[i].Ballot = max(q.bal, q.seen)\n", New: "",
		Guard: "TestASnapshotShowsTheBallotOfALeaderThatLeft", Want: "token went back"},
	{Rule: "ballots are noted even while the fold is unknown", File: "quorum.go",
		Old: "	if !own {\n", New: "	if !own && v.lease.Known() {\n",
		Guard: "TestSimulation/hunt", Want: `seed \d+: token went back`, Seeds: huntSeeds},
	{Rule: "the ballots of Beats are noted", File: "quorum.go",
		Old: "	if !own {\n", New: "	if !own && r.Kind != lease.Beat {\n",
		Guard: "TestEvidenceShowsItsBallot/beat", Want: "token went back"},
	{Rule: "the ballots of Claims are noted", File: "quorum.go",
		Old: "	if !own {\n", New: "	if !own && r.Kind != lease.Claim {\n",
		Guard: "TestEvidenceShowsItsBallot/claim", Want: "token went back"},
	{Rule: "the ballots of records of a newer version are noted", File: "quorum.go",
		Old: "	q.Answered(log, now)\n	q.seen = max(q.seen, ballot)\n", New: "	q.Answered(log, now)\n",
		Guard: "TestARecordOfANewerVersionShowsItsBallot", Want: "token went back"},
	{Rule: "the largest ballot that a log reports is noted", File: "quorum.go",
		Old: "	q.seen = max(q.seen, min(top, lease.MaxBallot))\n", New: "",
		Guard: "TestALogReportsItsLargestBallot", Want: "token went back"},
	{Rule: "a term begins only on logs from which its token was read back", File: "units.go",
		Old: "		if v.back >= q.bal {\n", New: "		if v.back >= 0 {\n",
		Guard: "TestATermBeginsWhenItsBallotHasComeBack", Want: "leads with a ballot that is in no log"},
	{Rule: "logs join a term only after its token is read back", File: "units.go",
		Old: "u.token != 0 && v.back >= u.token {", New: "u.token != 0 {",
		Guard: "TestALogJoinsATermWithItsToken", Want: "a log sustains a term whose token is not in it"},
	{Rule: "logs won late join a term only after its token is read back", File: "units.go",
		Old: "		if back >= u.token {\n", New: "		if back >= 0 {\n",
		Guard: "TestALogJoinsATermWithItsToken", Want: "a log sustains a term whose token is not in it"},
	{Rule: "a ballot counts when it is read back, not when it is sent", File: "make.go",
		Old: "{ v.said, v.beatAt = ballot, now.Mono }", New: "{ v.said, v.beatAt, v.back = ballot, now.Mono, max(v.back, ballot) }",
		Guard: "TestATermBeginsWhenItsBallotHasComeBack", Want: "leads before its Beat has come back"},

	// The end of a term.
	{Rule: "lapsed terms are ended before a record is read", File: "quorum.go",
		Old: "	q.check(now)\n	v := q.logs[log]\n	q.Answered(log, now)\n", New: "	v := q.logs[log]\n	q.Answered(log, now)\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: token led again`, Seeds: plainSeeds},
	{Rule: "the ballot rises above the token of a term that has ended", File: "units.go",
		Old: "	q.lift(u.token + 1)\n", New: "",
		Guard: "TestSimulation/plain", Want: `seed \d+: token (led again|went back)`, Seeds: plainSeeds},
	{Rule: "a term that is no longer led ends for good", File: "units.go",
		Old: "		if !q.enough(g.counts & young) {\n", New: "		if !q.enough(g.counts | young&0) {\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: token led again`, Seeds: plainSeeds},

	// Exclusivity.
	{Rule: "a term needs a majority, not any log", File: "quorum.go",
		Old: "majority: len(all)/2 + 1}", New: "majority: 1}",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "a majority is more than half of the logs", File: "quorum.go",
		Old: "majority: len(all)/2 + 1}", New: "majority: max(1, len(all)/2)}",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "a session that has ended sustains no term", File: "quorum.go",
		Old: "	q.dropAll(log)\n", New: "",
		Guard: "TestSimulation/plain", Want: `seed \d+: (two leaders|token led again)`, Seeds: plainSeeds},

	// Two lists, while the hosts change.
	{Rule: "with two lists, a term needs a majority of each", File: "quorum.go",
		Old: "		if (s & l.logs).size() < l.majority {\n			return false\n		}\n	}\n	return true\n", New: "		if (s & l.logs).size() >= l.majority {\n			return true\n		}\n	}\n	return false\n",
		Guard: "TestListsChange", Want: `seed \d+: (two leaders|led by its bound)`},
	{Rule: "with two lists, the list with the older evidence counts", File: "quorum.go",
		Old: "	return oldest(bounds[:len(q.lists)])\n", New: "	return bounds[0]\n",
		Guard: "TestListsChange", Want: `seed \d+: led by its bound alone`},

	// Logs that forget.
	{Rule: "a claimant waits after a log's id changes", File: "quorum.go",
		Old: "	v.lease.Begin(s, false, now)\n", New: "	v.lease.Begin(s, false, now.Add(-2*q.rules.T))\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: two (leaders|holders)`, Seeds: plainSeeds},
	{Rule: "a former incarnation's silence does not count", File: "quorum.go",
		Old: "	v.lease.Begin(s, false, now)\n", New: "	if v.begun {\n		v.lease.Begin(s, false, now.Add(-q.rules.T*2/3))\n	} else {\n		v.lease.Begin(s, false, now)\n	}\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: two (leaders|holders)`, Seeds: plainSeeds},
	{Rule: "the fold of an empty log is not known", File: "../lease/lease.go",
		Old: "	if whole {\n", New: "	if s == 0 {\n		l.join = nil\n	} else if whole {\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: two (leaders|holders)`, Seeds: plainSeeds},
	{Rule: "every Begin starts a new session", File: "../lease/lease.go",
		Old: "	l.renew()\n	l.fold = newFold()\n", New: "	if l.own.session.N == 0 {\n		l.renew()\n	}\n	l.fold = newFold()\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: (two|token|led by its bound)`, Seeds: plainSeeds},

	// Records that are lost on their way.
	{Rule: "a gap in a small log is a loss", File: "quorum.go",
		Old: "Longest: rules.T, Dense: true})})", New: "Longest: rules.T, Dense: false})})",
		Guard: "TestSimulation/lossy", Want: `seed \d+: (folds differ|two (leaders|holders)|alarm)`, Seeds: lossySeeds},
	{Rule: "after a loss, reading of the log begins anew", File: "../lease/consume.go",
		Old: "return o <= l.read || l.rules.Dense && o > l.read+1 }", New: "return o <= l.read }",
		Guard: "TestRecordsLostOnTheirWayMakeNoSecondLeader", Want: "two leaders"},

	// Folds that differ. The rules are those of package lease.
	{Rule: "a wrong fold is dropped even when votes are tied", File: "../lease/doubt.go",
		Old: "	case now.Raw >= d.until:\n		return tied\n", New: "",
		Guard: "TestMisreadRecordDoesBoundedHarm/a_claim_on_1_of_3_logs,_2_processes", Want: "a wrong fold is kept"},
	{Rule: "a process with a wrong fold does not end another process's leadership", File: "../lease/doubt.go",
		Old: "	case other > same:\n", New: "	case other > 0:\n",
		Guard: "TestMisreadRecordDoesBoundedHarm/a_claim_on_1_of_3_logs,_3_processes", Want: "processes that misread nothing begin again"},

	// The published bound.
	{Rule: "the bound needs evidence from a majority", File: "quorum.go",
		Old:   "	if n < majority {\n		return clock.Instant{}\n	}\n	return oldest(vs[:majority])\n",
		New:   "	if n == 0 {\n		return clock.Instant{}\n	}\n	return oldest(vs[:min(n, majority)])\n",
		Guard: "TestBoundIsTheMajoritythLargest", Want: "the bound is the majority-th largest"},
	{Rule: "the bound is the majority's oldest evidence", File: "quorum.go",
		Old: "oldest(vs[:majority])", New: "oldest(vs[:1])",
		Guard: "TestSimulation/plain", Want: `seed \d+: led by its bound alone`, Seeds: plainSeeds},

	// Without these rules a role may stay without a leader.
	{Rule: "a leader claims the logs that it lacks", File: "policy.go",
		Old: "!u.mine.has(log) && q.wants(role) && q.vacantOn(log, role, now) {\n					fill", New: "false {\n					fill",
		Guard: "TestLeaderLeadsOnWhileLogsFail/logs_forget_in_turn", Want: "not led all the time"},
	{Rule: "a role held on too few logs is given back", File: "policy.go",
		Old: "return now.Mono >= u.tried.Add(4*patience) || !q.first(role, now)", New: "return patience < 0",
		Guard: "TestSplitVotesAreDecided/.*", Want: `seed \d+: split vote`},
	{Rule: "a term that waits for a larger ballot beats at once", File: "policy.go",
		Old: "waiting.has(log) && v.back < q.bal && v.said < q.bal {", New: "v == nil {",
		Guard: "TestLateFreshClaimLeadsWithALargerBallotThanTheTermBefore", Want: "does not lead"},
	{Rule: "the silence of a holder is noticed", File: "policy.go",
		Old: "			return 1\n		}\n		return 0\n", New: "			return 0\n		}\n		return 0\n",
		Guard: "TestAllRolesAreLedSoonInQuietTimes/leader_crash,_3_logs", Want: `seed \d+: led after`},

	// Without these rules Tick would be due again at once, and so without an end.
	{Rule: "Tick ends sessions that have lapsed", File: "policy.go",
		Old: "	out := q.Lapse(now)\n", New: "	var out []Out\n",
		Guard: "TestTickDoesWhatIsDue/an_own_lease", Want: "what was due is still due"},
	{Rule: "Tick considers all roles only once", File: "policy.go",
		Old: "		p.lookAll = false\n", New: "",
		Guard: "TestTickDoesWhatIsDue/.*", Want: "what was due is still due"},
	{Rule: "Tick considers a changed role only once", File: "policy.go",
		Old: "	p.looks = nil\n", New: "",
		Guard: "TestTickDoesWhatIsDue/.*", Want: "what was due is still due"},
	{Rule: "expired waits are removed", File: "policy.go",
		Old: "				q.look(role)\n			}\n		}\n		return true\n", New: "				q.look(role)\n			}\n		}\n		return false\n",
		Guard: "TestTickDoesWhatIsDue/a_lost_Claim", Want: "what was due is still due"},
	{Rule: "a Claim that does not come back is given up", File: "policy.go",
		Old: "			q.GiveUpClaims(log, now.Add(-q.rules.T), now)\n", New: "			_ = log\n",
		Guard: "TestTickDoesWhatIsDue/a_lost_Claim", Want: "what was due is still due"},
	{Rule: "an elapsed pause after failed Claims is cleared", File: "policy.go",
		Old: "			v.claimAt, p.lookAll = 0, true\n", New: "			p.lookAll = true\n",
		Guard: "TestTickDoesWhatIsDue/a_failed_Claim", Want: "what was due is still due"},
	{Rule: "a fresh Claim's time is noticed only once", File: "policy.go",
		Old: "			v.freshAt, p.lookAll = at, true\n", New: "			p.lookAll = true\n",
		Guard: "TestTickDoesWhatIsDue/an_unknown_log", Want: "what was due is still due"},
}

// ofTransport are the rules that this package expects its callers to keep. In the library,
// lease.Codec refuses a record of another log. Here the simulation does, so the mutant changes
// its source.
var ofTransport = []mutation.Mutant{
	{Rule: "a record written for another incarnation is skipped", File: "sim_proc_test.go",
		Old: "	if mine {\n", New: "	if mine || true {\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: (folds differ|two|alarm)`, Seeds: plainSeeds},
	{Rule: "new-list-only processes are served only after hosts leave the old list", File: "sim_lists_test.go",
		Old: "			y.host.left = true\n", New: "",
		Guard: "TestListsChange", Want: `seed \d+: two (leaders|holders)`},
	{Rule: "new-list-only processes are served only after old-list leases have ended", File: "sim_lists_test.go",
		Old: "clock.Wait(simT, w.pr.rho)", New: "clock.Wait(0, w.pr.rho)",
		Guard: "TestListsChange/a_straggler", Want: `seed \d+: two (leaders|holders)`},
}

// TestRulesAreGuarded removes each rule from the source and runs the test that guards it. The
// test must fail for the stated reason.
func TestRulesAreGuarded(t *testing.T) {
	if testing.Short() || seeded.Race {
		t.Skip("minutes of simulation: make mutants runs it, without the race detector")
	}
	mutation.Run(t, slices.Concat(rules, ofTransport))
}
