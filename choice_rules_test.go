package neli

import "testing"

// The rules of preference guard no lease, so none of them can cost more than a round
// trip, a contested claim or a term. Each has a test all the same that fails without
// it.
//
//	rule                                              without it                          guarded by
//	a Release names who is to claim next              heirs get more than their share     TestHeirs
//	others leave the heir a head start                contested claims                    TestHeirClaimsAlone
//	candidates claim one after the other, by rank     contested claims                    TestCrashSpreadsOverAllSurvivors
//	whose lease has lapsed is no candidate            the dead get their share            TestCrashSpreadsOverAllSurvivors
//	nobody has more than the share                    partitions fall to whom they may    TestAssignKeepsToTheShare
//	rendezvous hashing is mixed                       neighbours inherit                  TestRendezvousMixes
//	only steady members are made room for             flapping members take over          TestFlappingMemberTakesNothingOver
//	a lapse begins that time anew                     as above                            TestPeersSince
//	being unhealthy begins that time anew             as above                            TestPeersSince
//	and is said, however short it was                 as above                            TestAMomentOfUnwillingnessIsSaid
//	what was handed over stays for 30 s               contradictory members livelock      TestContradictoryPreferences
//	what was transferred stays                        Transfer is undone                  TestTransferredStays
//	who did not claim is shunned for a while          a deaf member costs term after term TestDeafMemberIsShunned
//	a tenth more than another is not worth a move     to and fro                          TestNextHasHysteresis
//	partitions move one at a time                     the application loses many at once  TestRebalanceDrainsOneAtATime
//	off is off                                        leaders are disturbed               TestRebalanceOff
//	a deliberate hand-over is not called off          nothing ever moves                  TestJoinIsOrderly
//	claims wait for those under way                   everybody claims everything         TestFewClaimsOnASlowLog
//	a claim is waited for for a moment only           a dead broker holds others up       TestPaceIsPatientForAMoment
//	a holder leads on until its heir has answered     deaf members cost a term            TestDeafMemberIsShunned
//	who is called answers                             nothing ever moves                  TestTransfer
//	what nobody would take is kept                    a term is given up for nothing      TestTransferToTheSilent
//	Transfer hears that it was called off             it never returns                    TestTransferToTheSilent
//	who does not answer gets no head start            others wait for nothing             TestCloseBesideTheSilent
//	an heir claims, whatever else it has under way    others claim what is its            TestHeirOfMany
//	ranks count from when a claim may be sent         everybody claims everything         TestFewClaimWhatWasVacantForLong
//	what was said aside is no round trip              ranks too close to each other       TestWhatIsSaidAsideIsNoRoundTrip
//	what was said aside brings nobody back            heirs that have left                TestPeersHearWhatWasSaidAside
//	of two StepDowns the one that ends last counts    it never returns                    TestStepDownOutlastsALongDrain
//	who is unhealthy wants nothing                    partitions are handed to it         TestTransferRefuses
//	who is unhealthy or has stepped down claims not   it claims                           TestFirstCheckComesBeforeTheFirstClaim, TestStepDownAlone
//	unhealthy until the first check says otherwise    it claims                           TestFirstCheckComesBeforeTheFirstClaim
//	a check that hangs counts as unhealthy            a hung application leads on         TestHangingCheckCountsAsSick
//	non-exclusive: who is unhealthy leaves the group  nobody takes over                   TestSharedHealthy
//	a failed claim wakes StepDown                     it never returns                    TestStepDownWaitsForAClaim
//	StepDown claims nothing while work is finished    it never returns                    TestStepDownOutlastsALongDrain
var choiceMutations = []mutation{
	{"a Release names who is to claim next", "arbiter_lease_choice.go",
		"		r.to, r.pinned, r.moved = h.to, h.pinned, h.why == ReasonRebalanced\n", "", "TestHeirs"},
	{"others leave the heir a head start", "arbiter_lease_choice.go",
		"			a.delays[p] += headStart(unit)\n", "", "TestHeirClaimsAlone"},
	{"candidates claim one after the other, by rank", "arbiter_lease_choice.go",
		"			a.delays[p] += 2 * unit * time.Duration(min(c.rank(me, chosen[n], p), maxRank))\n", "			_, _ = chosen, n\n",
		"TestCrashSpreadsOverAllSurvivors"},
	{"whose lease has lapsed is no candidate", "arbiter_lease_choice.go",
		"			a.peers.suspect(processOf(l.member)) // it was silent for T′\n", "", "TestCrashSpreadsOverAllSurvivors"},
	{"nobody has more than the share", "candidates.go",
		"	if a < share && b < share || a == b {\n", "	if share >= 0 {\n", "TestAssignKeepsToTheShare"},
	{"rendezvous hashing is mixed", "candidates.go",
		"	x = (x ^ x>>33) * 0xff51afd7ed558ccd\n	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53\n	return x ^ x>>33\n", "	return x\n", "TestRendezvousMixes"},
	{"only steady members are made room for", "arbiter_lease_choice.go",
		"now.mono-p.since.mono >= steadyAfter && ", "", "TestFlappingMemberTakesNothingOver"},
	{"a lapse begins that time anew", "peers.go",
		"former.nominated && !former.suspect {", "former.nominated {", "TestPeersSince"},
	{"being unhealthy begins that time anew", "peers.go",
		"former.nominated && !former.suspect {", "former.name != \"\" && !former.suspect {", "TestPeersSince"},
	{"and is said, however short it was", "peers.go",
		"	t.wavered = t.wavered || t.wanting && !all\n", "	t.wavered = t.wanting && !all\n", "TestAMomentOfUnwillingnessIsSaid"},
	{"what was handed over stays for 30 s", "arbiter_lease_choice.go",
		"now.mono-l.since.mono >= minTenure", "true", "TestContradictoryPreferences"},
	{"what was transferred stays", "arbiter_lease_choice.go",
		"	case release.pinned:\n		return giftPinned\n", "", "TestTransferredStays"},
	{"who did not claim is shunned for a while", "arbiter_lease_choice.go",
		"	a.choice.shunned[m.to] = now.mono + shunFor\n", "", "TestDeafMemberIsShunned"},
	{"a tenth more than another is not worth a move", "balance.go",
		"most-least <= max(1, each/10)", "most-least <= 1", "TestNextHasHysteresis"},
	{"partitions move one at a time", "arbiter_lease_choice.go",
		"if !a.set.rebalance || a.choice.moving != nil || ", "if !a.set.rebalance || ", "TestRebalanceDrainsOneAtATime"},
	{"off is off", "arbiter_lease_choice.go",
		"if !a.set.rebalance || a.choice.moving != nil || ", "if a.choice.moving != nil || ", "TestRebalanceOff"},
	{"a deliberate hand-over is not called off", "handover.go",
		"s.wanted && (!h.deliberate() || s.refused || over && !s.ready)", "s.wanted", "TestJoinIsOrderly"},
	{"claims wait for those under way", "pace.go",
		"return p.under >= p.limit", "return p.under > 100_000", "TestFewClaimsOnASlowLog"},
	{"a claim is waited for for a moment only", "pace.go",
		"now.mono-sent.mono < p.patience", "true", "TestPaceIsPatientForAMoment"},
	{"a holder leads on until its heir has answered", "arbiter_lease_intent.go",
		"s.ready = h.to == \"\" || a.answered(h)", "s.ready = true", "TestDeafMemberIsShunned"},
	{"what nobody would take is kept", "handover.go",
		"s.refused || over && !s.ready)", "over && s.ready)", "TestTransferToTheSilent"},
	{"who is called answers", "arbiter_lease.go",
		"	if called {\n", "	if called && false {\n", "TestTransfer"},
	{"who does not answer gets no head start", "arbiter_lease_intent.go",
		"				h.to = \"\" // it would only keep the others waiting\n", "", "TestCloseBesideTheSilent"},
	{"Transfer hears that it was called off", "transfer.go",
		"			return true, ErrNoAnswer\n", "			return false, nil\n", "TestTransferToTheSilent"},
	{"an heir claims regardless of what else it has under way", "arbiter_lease_intent.go",
		"a.inherits(p) || ", "", "TestHeirOfMany"},
	{"ranks count from when a claim may be sent", "arbiter_lease_choice.go",
		"now.mono - a.leases[p].vacantAt() + a.jitter()", "a.jitter()", "TestFewClaimWhatWasVacantForLong"},
	{"what was said aside is no round trip", "arbiter_lease_intent.go",
		" && !r.aside() {\n		a.tempo", " {\n		a.tempo", "TestWhatIsSaidAsideIsNoRoundTrip"},
	{"what was said aside brings nobody back", "peers.go",
		" || r.aside()) {", ") {", "TestPeersHearWhatWasSaidAside"},
	{"of two StepDowns the one that ends last counts", "transfer.go",
		"n.stepping == 0 {", "n.stepping >= 0 {", "TestStepDownOutlastsALongDrain"},
	{"who is unhealthy wants nothing", "arbiter_lease_intent.go",
		"		if a.willing(now) {\n			return nil\n", "		if a.posture.contend {\n			return nil\n", "TestTransferRefuses"},
	{"who is unhealthy claims nothing", "arbiter_lease_intent.go",
		"a.posture.wants(p) && a.posture.willing(now)", "a.posture.wants(p)", "TestFirstCheckComesBeforeTheFirstClaim"},
	{"who has stepped down claims nothing", "arbiter.go",
		"!p.unhealthy && now.mono >= p.away", "!p.unhealthy", "TestStepDownAlone"},
	{"unhealthy until the first check says otherwise", "neli.go",
		", unhealthy: set.healthy != nil}", "}", "TestFirstCheckComesBeforeTheFirstClaim"},
	{"a check that hangs counts as unhealthy", "health.go",
		"		judge(errHealthHangs)\n", "", "TestHangingCheckCountsAsSick"},
	{"non-exclusive: who is unhealthy leaves the group", "arbiter_vector.go",
		"	if a.desired.unhealthy { // and", "	a.desired.unhealthy = false\n	if a.desired.unhealthy { // and", "TestSharedHealthy"},
	{"a failed claim wakes StepDown", "arbiter_lease.go",
		"			a.seats.wake() // as above\n", "", "TestStepDownWaitsForAClaim"},
	{"StepDown claims nothing while work is finished", "transfer.go",
		"p.away = math.MaxInt64", "p.away = min(math.MaxInt64, n.now().mono+stepDownFor)", "TestStepDownOutlastsALongDrain"},
}

func TestChoiceRulesAreGuarded(t *testing.T) { areGuarded(t, choiceMutations) }
