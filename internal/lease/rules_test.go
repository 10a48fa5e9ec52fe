package lease

import (
	"slices"
	"testing"

	"github.com/goneli/neli/internal/mutation"
	"github.com/goneli/neli/internal/seeded"
	"github.com/stretchr/testify/require"
)

// These are the numbers of seeds that the guards run, with a mutant or without. The first half is
// enough to break each rule below.
const (
	plainSeeds = 3000
	huntSeeds  = 1500
	freshSeeds = 1500
	liveSeeds  = 400
)

// The rules of the protocol, each with a mutant that removes it. A rule that random seeds break too
// rarely has a hand-made counterexample (script_test.go). Some rules have no mutant, because here
// another rule implies them and removing them alone breaks nothing:
//
//   - a process that does not know the fold leads nothing: its session is new and its fold is empty
//   - a log is empty only if nothing was deleted from it: what is left of it is read
//   - V is the maximum of the stamps, and own evidence counts only while something is held: both rules are there for clarity
//   - a fresh Claim wins all or nothing: winning single roles would be as safe, but its sender would not know what it holds
var rules = []mutation.Mutant{
	// The fold.
	{Rule: "a claim must have read all evidence of the holder", File: "fold.go",
		Old: "h == nil || r.Read >= h.Last", New: "h == nil || r.Read >= f.tokens[role]",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "a Beat is evidence of its session", File: "fold.go",
		Old:   "r.Kind.evidential() && f.evidence(r.Session, o, now)",
		New:   "r.Kind.evidential() && (r.Kind == Beat && f.find(r.Session) != nil || f.evidence(r.Session, o, now))",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "a Claim of other roles is evidence of its session", File: "fold.go",
		Old:   "r.Kind.evidential() && f.evidence(r.Session, o, now)",
		New:   "r.Kind.evidential() && (r.Kind == Claim && len(changed) > 0 && f.find(r.Session).Last < o && f.find(r.Session) != nil || f.evidence(r.Session, o, now))",
		Guard: "TestAClaimOfOtherRolesIsEvidence", Want: "two leaders"},
	{Rule: "an invalid Claim is evidence of its session", File: "fold.go",
		Old:   "r.Kind.evidential() && f.evidence(r.Session, o, now)",
		New:   "r.Kind.evidential() && (r.Kind == Claim && len(changed) == 0 && f.find(r.Session) != nil || f.evidence(r.Session, o, now))",
		Guard: "TestAnInvalidClaimIsEvidence", Want: "two leaders"},
	{Rule: "a Snapshot is no evidence", File: "fold.go",
		Old: "return k == Beat || k == Claim }", New: "return k == Beat || k == Claim || k == Snapshot }",
		Guard: "TestOnlyEvidenceMovesLast", Want: "folds differ"},
	{Rule: "a Release is no evidence", File: "fold.go",
		Old: "return f.release(r, changed), false", New: "return f.release(r, changed), f.evidence(r.Session, o, now)",
		Guard: "TestOnlyEvidenceMovesLast", Want: "folds differ"},
	{Rule: "a Release names its token", File: "fold.go",
		Old: "h.Session == r.Session && f.tokens[role] == g.Token {", New: "h.Session == r.Session {",
		Guard: "TestAReleaseNamesItsToken", Want: "two leaders"},
	{Rule: "a sentinel's Release names the session, and frees no other session's roles", File: "fold.go",
		Old: "h != nil && h.Session == r.Session && f.tokens[role] == g.Token {", New: "h != nil && f.tokens[role] == g.Token {",
		Guard: "TestSentinels", Want: `seed \d+: (two leaders|a sentinel's Release freed|folds differ)`, Seeds: huntSeeds},
	{Rule: "a sentinel's Release never frees its own process's roles", File: "dead.go",
		Old: "if l.join != nil || id.Process == l.rules.Process {", New: "if l.join != nil {",
		Guard: "TestNoProcessReleasesItsOwnSession", Want: "whose work may go on"},
	{Rule: "a fresh claim must have read all evidence of all holders", File: "fold.go",
		Old: "if r.Read < f.session[i].Last {", New: "if r.Read < f.session[i].Last && false {",
		Guard: "TestSimulation/hunt", Want: `seed \d+: (two leaders|folds differ)`, Seeds: huntSeeds},
	{Rule: "a valid fresh Claim frees all other roles", File: "fold.go",
		Old: "		f.clear()\n	}\n	before", New: "	}\n	before",
		Guard: "TestSimulation/plain", Want: `seed \d+: folds differ`, Seeds: plainSeeds},

	// Silence.
	{Rule: "a claimant waits for silence", File: "lease.go",
		Old: "at = h.freeAt(l.rules.Rho)", New: "_ = h",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "beats restart the wait", File: "fold.go",
		Old: "	s.Last, s.heard = o, now\n", New: "	s.Last = o\n	if s.heard == (clock.Instant{}) {\n		s.heard = now\n	}\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "silence is counted from when the record was received, not from the poll", File: "fold.go",
		Old: "s.Last, s.heard = o, now", New: "s.Last, s.heard = o, now.Add(-s.T/4)",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "the wait covers ρ", File: "../clock/clock.go",
		Old: "float64(t)*(1+rho)/(1-rho)", New: "float64(t)",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "the wait is corrected for both clocks' ρ", File: "../clock/clock.go",
		Old: "float64(t)*(1+rho)/(1-rho)", New: "float64(t)*(1+rho)",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},

	// A process's own session.
	{Rule: "a stamp is taken before the send, not at receipt", File: "make.go",
		Old: "	return at\n}", New: "	return now\n}",
		Guard: "TestSimulation/hunt", Want: `seed \d+: two leaders`, Seeds: huntSeeds},
	{Rule: "V moves when a record is read back, not when it is sent", File: "make.go",
		Old: "	return l.record(Beat, now), true", New: "	l.own.v = now\n	return l.record(Beat, now), true",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "no evidence moves V after a lapse", File: "consume.go",
		Old: "evidence && mine && !lapsed {", New: "evidence && mine && (!lapsed || true) {",
		Guard: "TestSimulation/plain", Want: `seed \d+: (token led again|two leaders)`, Seeds: plainSeeds},
	{Rule: "a lapse ends the session", File: "make.go",
		Old: "	former := l.own.session\n	l.renew()\n", New: "	former := l.own.session\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: token led again`, Seeds: plainSeeds},
	{Rule: "every Begin starts a new session", File: "lease.go",
		Old: "	l.renew()\n	l.fold = newFold()\n", New: "	if l.own.session.N == 0 {\n		l.renew()\n	}\n	l.fold = newFold()\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: (token led again|two leaders)`, Seeds: plainSeeds},
	{Rule: "every boot has a new process id", File: "lease.go",
		Old: "Session{l.rules.Process, l.own", New: "Session{l.rules.Process[:1], l.own",
		Guard: "TestSimulation/plain", Want: `seed \d+: (token led again|token went back|two leaders)`, Seeds: plainSeeds},
	{Rule: "a role is forgotten before its Release is sent", File: "make.go",
		Old: "		return leads\n", New: "		return leads && false\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "a process does not lead a role that it forgot", File: "lease.go",
		Old: "yes && gone == token", New: "yes && gone == token && false",
		Guard: "TestAForgottenRoleIsNotLed", Want: "leads what it forgot"},
	{Rule: "only a session that holds something beats", File: "make.go",
		Old: "	if l.Holding() == 0 || l.Lapsed(now) {\n		return Record{}, false", New: "	if l.join != nil || l.Lapsed(now) {\n		return Record{}, false",
		Guard: "TestSimulation/plain", Want: `seed \d+: alarm in a sound log`, Seeds: plainSeeds},

	{Rule: "a gap in a dense log is a loss", File: "consume.go",
		Old: "return o <= l.read || l.rules.Dense && o > l.read+1 }", New: "return o <= l.read }",
		Guard: "TestGapInADenseLogIsALoss/.*", Want: "missed the loss of two records"},

	// Folds that differ.
	{Rule: "one process with another fold costs no process its leadership", File: "doubt.go",
		Old: "	case other > same:\n", New: "	case other > 0:\n",
		Guard: "TestProcessWithAnotherFoldIsOutvoted", Want: "begins again after a single contradiction"},
	{Rule: "a process contradicted by two others begins again", File: "doubt.go",
		Old: "	case other > same:\n", New: "	case other > same+8:\n",
		Guard: "TestOutvotedProcessBeginsAgain", Want: "goes on with a fold that two others contradict"},
	{Rule: "a process begins again after a tie, too", File: "doubt.go",
		Old: "	case now.Raw >= d.until:\n		return tied\n", New: "",
		Guard: "TestTieMakesBothProcessesBeginAgain", Want: "keeps a fold that may be wrong"},
	{Rule: "after a tie, Snapshots of processes that differed are not adopted", File: "doubt.go",
		Old: "l.disbelieved[id] = !agrees", New: "l.disbelieved[id] = agrees && false",
		Guard: "TestTieMakesBothProcessesBeginAgain", Want: "adopts a Snapshot of the process that contradicted it"},
	{Rule: "after a tie, those Snapshots are adopted again after W of the longest lease", File: "doubt.go",
		Old: " || now.Raw >= l.believeAt\n", New: "\n",
		Guard: "TestTieMakesBothProcessesBeginAgain", Want: "refuses the other's Snapshot for ever"},
	{Rule: "a process in doubt claims nothing", File: "lease.go",
		Old: "	if l.join != nil || l.Doubtful() {\n", New: "	if l.join != nil {\n",
		Guard: "TestProcessWithAnotherFoldIsOutvoted", Want: "claims, though nobody knows who is wrong"},
	{Rule: "a Snapshot made before a contradiction is no vote on it", File: "doubt.go",
		Old: "	case agrees && r.Read < d.from:\n", New: "	case agrees && r.Read < 0:\n",
		Guard: "TestProcessWithAnotherFoldIsOutvoted", Want: "counts a Snapshot made before the contradiction"},
	{Rule: "a Beat of a session that holds nothing is a contradiction", File: "doubt.go",
		Old: "r.Kind == Beat && !evidence && l.trail.contradicts(r)", New: "r.Kind == Beat && evidence && l.trail.contradicts(r)",
		Guard: "TestBeatOfASessionWithoutRolesIsAVoteAgainstTheFold", Want: "ignores a Beat that contradicts the fold"},
	{Rule: "the number of votes is bounded", File: "doubt.go",
		Old: "	if !known && len(d.voices) >= maxVoices {\n", New: "	if !known && len(d.voices) >= 8*maxVoices {\n",
		Guard: "TestNumberOfVotesIsBounded", Want: "counts the votes of more processes than a group has"},

	// Before the fold is known.
	{Rule: "a disbelieved process states no longest lease", File: "consume.go",
		Old: "	if believed { //", New: "	if true { //",
		Guard: "TestDisbelievedProcessDoesNotShortenTheWait", Want: "claims what another process leads"},
	{Rule: "a Snapshot reaches back to the beginning", File: "consume.go",
		Old: "!believed || r.Read < j.since-1", New: "!believed",
		Guard: "TestSimulation/plain", Want: `seed \d+: (folds differ|two leaders)`, Seeds: plainSeeds},
	{Rule: "records after a Snapshot's read are folded", File: "consume.go",
		Old: "l.refold(kept, read, now)", New: "l.refold(kept, o, now)",
		Guard: "TestSimulation/plain", Want: `seed \d+: folds differ`, Seeds: plainSeeds},
	{Rule: "the silence of a Snapshot's holders is counted from its adoption", File: "consume.go",
		Old: "		f.session[i].heard = now\n", New: "		f.session[i].heard = now.Add(-clock.Tmax)\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "a Snapshot counts when all its parts are read", File: "join.go",
		Old: "p.missing--; p.missing > 0 {", New: "p.missing--; p.missing > 1 {",
		Guard: "TestASnapshotMakesANewcomerKnow", Want: "a whole Snapshot was not adopted"},
	{Rule: "a Snapshot lists the roles of a Claim together", File: "state.go",
		Old: "	next := map[int64]int{} //", New: "	if f != nil {\n		return roles\n	}\n	next := map[int64]int{} //",
		Guard: "TestASnapshotHasOneGrantForEachClaim", Want: "Not equal"},
	{Rule: "a fresh claim is adopted only if it had read all possible evidence", File: "consume.go",
		Old: "r.Kind == Claim && r.Fresh && r.Read >= j.from-1 && r.Read >= j.busy:", New: "r.Kind == Claim && r.Fresh && r.Read >= j.from-1:",
		Guard: "TestSimulation/plain", Want: `seed \d+: (folds differ|two leaders)`, Seeds: plainSeeds},
	{Rule: "the wait of a fresh claim begins where reading began", File: "join.go",
		Old: "max(clock.FreeAt(j.begun, j.bound, rho), j.over)", New: "j.over + 0*clock.Raw(rho)",
		Guard: "TestSimulation/hunt", Want: `seed \d+: two leaders`, Seeds: huntSeeds},
	{Rule: "evidence restarts the wait of a fresh claim", File: "join.go",
		Old: "	j.over = max(j.over, clock.FreeAt(now.Raw, t, rho))\n", New: "",
		Guard: "TestSimulation/hunt", Want: `seed \d+: two leaders`, Seeds: huntSeeds},
	{Rule: "reading begins when the start offset is known", File: "lease.go",
		Old: "newJoin(s, l.rules.longest(), now)", New: "newJoin(s, l.rules.longest(), now.Add(-l.rules.T/2))",
		Guard: "TestSimulation/fresh", Want: `seed \d+: (two leaders|token led again)`, Seeds: freshSeeds},

	// A log that is read from its origin.
	{Rule: "only an own record completes the origin", File: "consume.go",
		Old: "l.join != nil && e.Own && l.origin", New: "l.join != nil && l.origin",
		Guard: "TestFirstOfAllKnowsTheFoldAtOnce", Want: "completes the origin by another process's record"},
	{Rule: "only a record of the present session completes the origin", File: "consume.go",
		Old: "l.join != nil && e.Own && l.origin", New: "l.join != nil && r.Session.Process == l.rules.Process && l.origin",
		Guard: "TestOriginNeedsAllRecordsAndAnOwnOne/a_former_session's_record", Want: "knows what it has not read"},
	{Rule: "the origin is offset 0", File: "consume.go",
		Old: " && j.from == 0 && j.since == 0 {", New: " && j.since == j.from {",
		Guard: "TestOriginNeedsAllRecordsAndAnOwnOne/not_from_offset_0", Want: "knows what it has not read"},
	{Rule: "a record dropped for lack of room ends the origin", File: "consume.go",
		Old: " && j.from == 0 && j.since == 0 {", New: " && j.from == 0 {",
		Guard: "TestOriginNeedsAllRecordsAndAnOwnOne/dropped_records", Want: "knows what it has not read"},
	{Rule: "a reader says whether it reads from the origin", File: "consume.go",
		Old: "e.Own && l.origin &&", New: "e.Own &&",
		Guard: "TestLostLogs", Want: `seed \d+: two leaders`, Seeds: freshSeeds},
	{Rule: "the fold at the origin is that of all records", File: "consume.go",
		Old: "	l.refold(kept, none, now)\n", New: "	_ = kept\n",
		Guard: "TestSimulation/origin", Want: `seed \d+: folds differ`, Seeds: freshSeeds},
	{Rule: "the silence of holders found in a log that was read from its origin is counted from then", File: "consume.go",
		Old: "	l.refold(kept, none, now)\n", New: "	l.refold(kept, none, now.Add(-clock.Tmax))\n",
		Guard: "TestHoldersFoundByOriginAreWaitedFor", Want: "two leaders"},
	{Rule: "records of newer versions found there are waited for", File: "consume.go",
		Old: "		case e.record == nil:\n", New: "		case e.record == nil && read == none:\n		case e.record == nil:\n",
		Guard: "TestNewerVersionsFoundByOriginAreWaitedFor", Want: "claims what a newer version may hold"},

	// Leases of different length.
	{Rule: "a claimant waits for the holder's T", File: "lease.go",
		Old: "at = h.freeAt(l.rules.Rho)", New: "at = clock.FreeAt(h.heard.Raw, l.rules.T, l.rules.Rho)",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "a Snapshot states each holder's T", File: "codec.go",
		Old: "h.Name, h.T, h.Last})\n	}\n	if s.Grants", New: "h.Name, clock.Tmax / 10, h.Last})\n	}\n	if s.Grants",
		Guard: "TestASnapshotMakesANewcomerKnow", Want: "a whole Snapshot was not adopted"},
	{Rule: "a process without the fold waits for the longest T allowed", File: "lease.go",
		Old: "	l.join = newJoin(s, l.rules.longest(), now)\n", New: "	l.join = newJoin(s, l.rules.T, now)\n",
		Guard: "TestSimulation/hunt", Want: `seed \d+: two leaders`, Seeds: huntSeeds},
	{Rule: "a stated longest lease counts only if its sender had read up to the beginning", File: "join.go",
		Old: "r.Longest != Unsaid && r.Read >= j.from-1", New: "r.Longest != Unsaid",
		Guard: "TestSimulation/hunt", Want: `seed \d+: two leaders`, Seeds: huntSeeds},
	{Rule: "only a process that knows the fold states the longest lease", File: "make.go",
		Old: "r.Longest = l.fold.longest()\n	}", New: "r.Longest = l.fold.longest()\n	} else if k != Claim {\n		r.Longest = l.rules.T\n	}",
		Guard: "TestSimulation/hunt", Want: `seed \d+: two leaders`, Seeds: huntSeeds},
	{Rule: "the longest lease stated is the largest of all, not the sender's own T", File: "make.go",
		Old: "r.Longest = l.fold.longest()", New: "r.Longest = l.rules.T",
		Guard: "TestLongestCoversAllHolders", Want: "two leaders"},
	{Rule: "the longest lease stated is the largest of all, not of the sender's sessions", File: "make.go",
		Old: "		r.Longest = l.fold.longest()\n", New: "		r.Longest = 0\n		if l.Holding() > 0 {\n			r.Longest = l.rules.T\n		}\n",
		Guard: "TestLongestCoversAllHolders", Want: "two leaders"},
	{Rule: "of all leases heard, the one that ends last counts", File: "join.go",
		Old: "max(j.over, clock.FreeAt(now.Raw, t, rho))", New: "clock.FreeAt(now.Raw, t, rho)",
		Guard: "TestTheLeaseThatEndsLastCounts", Want: "two leaders"},
	{Rule: "a lease heard counts with its sender's T", File: "join.go",
		Old: "clock.FreeAt(now.Raw, t, rho)", New: "now.Raw.Add(min(t, 0))",
		Guard: "TestSimulation/hunt", Want: `seed \d+: two leaders`, Seeds: huntSeeds},

	// Records of a newer version.
	{Rule: "a record of a newer version is not skipped", File: "consume.go",
		Old: "	l.fold.setNewer(o)\n	l.newerAt = now\n", New: "	l.newerAt = now\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: (folds differ|two leaders)`, Seeds: plainSeeds},
	{Rule: "a claim must have read the newest record of a newer version", File: "fold.go",
		Old: "	if r.Read < f.newer {\n", New: "	if r.Read < f.newer && false {\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: (two leaders|folds differ)`, Seeds: plainSeeds},
	{Rule: "claims wait for the silence of newer versions", File: "lease.go",
		Old: "	if l.fold.newer != none {\n		at", New: "	if l.fold.newer != none && false {\n		at",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "the wait for newer versions covers the longest T allowed", File: "lease.go",
		Old: "clock.FreeAt(l.newerAt.Raw, l.rules.longest(),", New: "clock.FreeAt(l.newerAt.Raw, l.rules.T,",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "a process without the fold waits for newer versions, too", File: "consume.go",
		Old: "		j.hear(o, now, l.rules.longest(), l.rules.Rho)\n", New: "",
		Guard: "TestSimulation/hunt", Want: `seed \d+: (two leaders|folds differ)`, Seeds: huntSeeds},
	{Rule: "a process without the fold adopts a fresh Claim only if that had read the newest record of a newer version", File: "consume.go",
		Old: "j.hear(o, now, l.rules.longest(), l.rules.Rho)", New: "j.hear(j.busy, now, l.rules.longest(), l.rules.Rho)",
		Guard: "TestSimulation/hunt", Want: `seed \d+: (two leaders|folds differ)`, Seeds: huntSeeds},
	{Rule: "a process without the fold waits for the longest T after a record of a newer version", File: "consume.go",
		Old: "j.hear(o, now, l.rules.longest(), l.rules.Rho)", New: "j.hear(o, now, l.rules.T, l.rules.Rho)",
		Guard: "TestANewerVersionMayHoldForTmax", Want: "claims what a newer version may hold"},
	{Rule: "newer records after a Snapshot's read are folded", File: "consume.go",
		Old: "		j.keep(entry{offset: o})\n", New: "",
		Guard: "TestSimulation/hunt", Want: `seed \d+: folds differ`, Seeds: huntSeeds},
	{Rule: "a Snapshot states the newest record of a newer version", File: "consume.go",
		Old: "	if s.Newer != none {\n		f.setNewer(s.Newer)\n	}\n	return f, f.hash == s.Hash", New: "	return f, f.hash == s.Hash || s.Newer != none",
		Guard: "TestSimulation/hunt", Want: `seed \d+: (folds differ|Snapshot lies|two leaders)`, Seeds: huntSeeds},
	{Rule: "a newer version's silence is counted from a Snapshot's adoption", File: "consume.go",
		Old: "	l.newerAt = now\n	l.trail.add(read", New: "	l.newerAt = now.Add(-2*clock.Tmax)\n	l.trail.add(read",
		Guard: "TestSimulation/hunt", Want: `seed \d+: two leaders`, Seeds: huntSeeds},
	{Rule: "the longest lease stated is Tmax while a newer version may hold a role", File: "fold.go",
		Old: "	if f.newer != none {\n		return clock.Tmax\n	}\n", New: "",
		Guard: "TestANewerVersionMayHoldForTmax", Want: "claims what a newer version may hold"},

	{Rule: "a field that only newer readers know does not decide whether a record is folded", File: "request.go",
		Old: "if w.Kind == Ping && said(w.Request) {", New: "if said(w.Request) {",
		Guard: "TestARequestInOtherRecordsIsIgnored", Want: `request = 7`},

	// Without these rules a role may stay without a leader.
	{Rule: "Releases are repeated until they are read back", File: "make.go",
		Old: "	if len(l.own.forgotten) > 0 {\n		out =", New: "	if len(l.own.forgotten) > 0 && false {\n		out =",
		Guard: "TestAllRolesAreLedOnceFaultsEnd/all_restart_false", Want: `seed \d+: not everything is led`, Seeds: liveSeeds},
	{Rule: "the roles of former sessions are released", File: "make.go",
		Old: "id.Process == l.rules.Process && id", New: "id.Process == \"\" && id",
		Guard: "TestReleaseAndLapse", Want: "leaves a former session's roles unreleased"},
	{Rule: "a Claim without an answer is given up", File: "make.go",
		Old: "l.own.claims[0].at.Mono <= sent.Mono {", New: "l.own.claims[0].at.Mono < sent.Mono-clock.Mono(time.Hour) {",
		Guard: "TestAllRolesAreLedOnceFaultsEnd/all_restart_false", Want: `seed \d+: not everything is led`, Seeds: liveSeeds},
	{Rule: "a failed Claim is no longer in flight", File: "make.go",
		Old: "	if id == l.own.session {\n		l.own.resolve(seq)", New: "	if id == l.own.session && false {\n		l.own.resolve(seq)",
		Guard: "TestAFailedClaimMayBeSentAgain", Want: "a failed Claim counts as in flight"},
	{Rule: "a whole Snapshot is adopted", File: "consume.go",
		Old: "e.Known = l.adopt(o, r.Read, s, now)", New: "_ = s",
		Guard: "TestAllRolesAreLedOnceFaultsEnd/all_restart_false", Want: `seed \d+: not everything is led`, Seeds: liveSeeds},
	{Rule: "the longest lease that records state shortens the wait", File: "join.go",
		Old: "j.bound = min(j.bound, r.Longest)", New: "_ = r.Longest",
		Guard: "TestLongestShortensTheWait", Want: "waits longer than the longest lease in use"},

	// Clocks.
	{Rule: "a holder allows for a slewed clock", File: "../clock/clock.go",
		Old: "return t - t/10", New: "return t",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "a holder shortens its lease by 1 − σ, not 1/(1 + σ)", File: "../clock/clock.go",
		Old: "return t - t/10", New: "return t * 10 / 11",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "a holder goes by the clock that shows the greatest age", File: "../clock/clock.go",
		Old: "	age := max(t.Mono.Sub(s.Mono), t.Wall.Sub(s.Wall))\n	if t.Boot != 0 && s.Boot != 0 {\n		age = max(age, t.Boot.Sub(s.Boot))\n	}\n", New: "	age := t.Mono.Sub(s.Mono)\n",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
	{Rule: "silence is measured by a clock that nobody slews", File: "make.go",
		Old:   "	if l.own.claiming.has(role) || now.Raw < l.FreeAt(role) {",
		New:   "	x := l.fold.holderOf(role)\n	if l.own.claiming.has(role) || x != nil && now.Mono < x.heard.Mono.Add(clock.Wait(x.T, l.rules.Rho)) {",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
}

// ofTransport are the rules that this package expects its callers to keep. Here the simulation is
// the caller, so the mutants change its source.
var ofTransport = []mutation.Mutant{
	{Rule: "a log whose leader epoch has grown may have lost its first records", File: "sim_proc_test.go",
		Old: "p.origin && e.epoch == 0", New: "p.origin",
		Guard: "TestLostLogs", Want: `seed \d+: two leaders`, Seeds: freshSeeds},
	{Rule: "a claim states what was read when it was decided", File: "sim_proc_test.go",
		Old: "e.r.Kind == Claim, func() { w.append(e) }", New: "e.r.Kind == Claim, func() {\n		if late := *e.r; late.Kind == Claim && !e.newer {\n			late.Read = int64(len(w.log)) - 1\n			e = w.encode(&late, false)\n		}\n		w.append(e)\n	}",
		Guard: "TestSimulation/plain", Want: `seed \d+: two leaders`, Seeds: plainSeeds},
}

// byModel are some of the rules again, with the model as the guard. Its output shows the shortest
// way to the fault.
var byModel = []struct{ rule, guard, want string }{
	{"a Claim of other roles is evidence of its session", "TestModel/two_processes,_two_roles", "FAULT: two leaders"},
	{"a fresh claim is adopted only if it had read all possible evidence", "TestModel/two_late_joiners", "FAULT: folds differ"},
	{"records after a Snapshot's read are folded", "TestModel/a_late_joiner", "FAULT: folds differ"},
	{"the silence of a Snapshot's holders is counted from its adoption", "TestModel/a_late_joiner", "FAULT: two leaders"},
	{"a claimant waits for the holder's T", "TestModel/a_short_and_a_long_lease", "FAULT: two leaders"},
	{"every Begin starts a new session", "TestModel/a_jump,_Snapshots", "FAULT: (token led again|two leaders)"},
}

// everyRule returns rules, ofTransport and byModel.
func everyRule(t *testing.T) []mutation.Mutant {
	all := slices.Concat(rules, ofTransport)
	for _, again := range byModel {
		i := slices.IndexFunc(rules, func(m mutation.Mutant) bool { return m.Rule == again.rule })
		require.GreaterOrEqual(t, i, 0, again.rule)
		m := rules[i]
		m.Rule, m.Guard, m.Want, m.Seeds = "every way: "+m.Rule, again.guard, again.want, 0
		all = append(all, m)
	}
	return all
}

// TestRulesAreGuarded removes each rule from the source and runs the test that guards it. The
// test must fail for the stated reason.
func TestRulesAreGuarded(t *testing.T) {
	if testing.Short() || seeded.Race {
		t.Skip("minutes of simulation: make mutants runs it, without the race detector")
	}
	mutation.Run(t, everyRule(t))
}
