package neli

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each safety rule of the lease has a test that fails when the rule is removed.
// TestRulesAreGuarded proves it: it removes one rule at a time from the source
// (with go's -overlay, so that no test mode is left in the library), and runs the
// test that guards the rule; that test has to fail.
//
//	rule                                             without it                       guarded by
//	forget the token before sending Release          revived beside the next leader   TestLeaseSimulation
//	a fresh id at every start                        takes up its own released claim  TestLeaseSimulation
//	a lapsed term ends                               no leader ever                   TestLeaseSimulation
//	re-claim only after read-back or failure         no leader ever                   TestLeaseSimulation
//	claiming ends at start                           no leader ever                   TestLeaseStartForgets
//	position check before the foreign-record check   no leader ever                   TestLeaseLogWentBack
//	a record that saw what lies ahead: start anew    no leader ever                   TestLeaseLogWentBack
//	silence wait                                     two leaders                      TestLeaseSimulation
//	beats restart the wait                           two leaders                      TestLeaseSimulation
//	doubtful records restart it, state unknown       two leaders                      TestLeaseSimulation
//	valid ⇔ last ≤ read                              two leaders                      TestLeaseSimulation
//	beats move last                                  two leaders                      TestLeaseSimulation
//	V moves on read-back, not on send                two leaders                      TestLeaseSimulation
//	stamp taken at send, not at receipt              two leaders                      TestLeaseSimulation
//	T′ corrected for drift                           two leaders                      TestLeaseSimulation
//	fenced in log order by a foreign claim           two leaders                      TestLeaseSimulation
//	match by token, not by member                    two leaders, or records that lie TestLeaseSimulation
//	unknown state: wait T′                           two leaders                      TestLeaseSimulation
//	unknown state: trust no own claim                two leaders                      TestLeaseSimulation
//	unknown state: adopt no doubtful beat            two leaders                      TestLeaseSimulation
//	the leader takes the longer of both clocks       two leaders                      TestLeaseSimulation
//	the claimant takes the monotonic clock           two leaders                      TestLeaseSimulation
//	quiet is read after the poll                     two leaders                      TestReadingComesBeforeTheClock
//	stop the work before Release                     two workers                      TestDrainBeforeRelease
//	beats stop when the application hangs            nobody replaces it               TestHungApplicationIsReplaced
//	boot clock after the resolved start offset       two leaders                      TestBootClockComesAfterTheOffsets
//	the topic's identity is checked                  tokens start again               TestTopicReplaced
//	purge before anything more is produced           records in the wrong log         TestReplacedTopicIsPurged
//	nothing is begun once the work is done           two workers                      TestNoLeaderAfterTheBarrierReturned
//	leadership is looked at again after the clock    two leaders                      TestCellLooksAgainAfterTheClock
//	the earliest deadline of what is revoked counts  two workers                      TestRevokedDeadlineIsTheEarliest
//	a lost session nominates for nothing new         a claim without a nomination     TestNothingNewIsClaimedAfterTheSessionIsLost
//	what was in the log before is no news            old holders told as new ones     TestOldRecordsAreNoNews
//	silence tells the watchers                       told late                        TestSilenceIsNoticedInTime
//	the reader seals the log, and it stays sealed    records in the wrong log         TestNothingIsAppendedToAReplacedTopic
type mutation struct {
	rule  string
	file  string
	old   string // must occur exactly once
	new   string
	guard string
}

var mutations = []mutation{
	{"forget the token before sending Release", "lease.go",
		"		k := l.mine\n		l.mine = noToken\n", "		k := l.mine\n", "TestLeaseSimulation"},
	{"a fresh id at every start", "lease.go",
		"	l.me = l.newID()\n	l.sent = l.sent[:0]\n", "	if l.me == \"\" {\n		l.me = l.newID()\n	}\n", "TestLeaseSimulation"},
	{"a lapsed term ends", "lease.go",
		"l.mine != noToken && (!l.holds(now) || !in.keep)", "l.mine != noToken && !in.keep", "TestLeaseSimulation"},
	{"re-claim only after read-back or failure", "lease.go",
		"in.want && l.claiming == 0 && now.mono >=", "in.want && (l.claiming == 0 || l.beatDue(now)) && now.mono >=", "TestLeaseSimulation"},
	{"claiming ends at start", "lease.go",
		"	l.claiming = 0\n	l.quiet = now\n", "	l.quiet = now\n", "TestLeaseStartForgets"},
	{"position check before the foreign-record check", "lease.go",
		"	if o <= l.read {\n		l.start(o+1, now)\n		return consumed{alarm: true}\n	}\n	l.read = o\n	return consumed{}",
		"	l.read = max(l.read, o)\n	return consumed{}", "TestLeaseLogWentBack"},
	{"a record that saw what lies ahead: start anew", "lease.go",
		"r.read >= o || r.token >= o", "false", "TestLeaseLogWentBack"},
	{"silence wait", "lease.go",
		"		at += l.wait\n", "", "TestLeaseSimulation"},
	{"beats restart the wait", "lease.go",
		"	l.quiet = now\n	if !valid {", "	if r.kind != kindBeat {\n		l.quiet = now\n	}\n	if !valid {", "TestLeaseSimulation"},
	{"doubtful records restart the wait while the state is unknown", "lease.go",
		"if !valid && l.token != tokenUnknown {", "if !valid {", "TestLeaseSimulation"},
	{"valid ⇔ last ≤ read", "lease.go",
		"valid := r.read >= l.last ||", "valid := r.kind == kindClaim || r.read >= l.last ||", "TestLeaseSimulation"},
	{"beats move last", "lease.go",
		"	l.last = o\n", "	if r.kind != kindBeat {\n		l.last = o\n	}\n", "TestLeaseSimulation"},
	{"V moves on read-back, not on send", "lease.go",
		"		return l.send(kindBeat, l.mine, now), true\n", "		l.v = now\n		return l.send(kindBeat, l.mine, now), true\n", "TestLeaseSimulation"},
	{"stamp taken at send, not at receipt", "lease.go",
		"			return l.sent[i].stamp\n", "			return now\n", "TestLeaseSimulation"},
	{"T′ corrected for drift", "lease.go",
		"time.Duration(float64(t)*(1+drift)/(1-drift))", "t", "TestLeaseSimulation"},
	{"fenced in log order by a foreign claim", "lease.go",
		"		l.mine = noToken // fenced, in log order\n", "", "TestLeaseSimulation"},
	{"match by token, not by member", "lease.go",
		"r.token == l.token)", "r.name == l.holder)", "TestLeaseSimulation"},
	{"unknown state: wait T′", "lease.go",
		"	if l.token != tokenNone {\n		at", "	if l.token >= 0 {\n		at", "TestLeaseSimulation"},
	{"unknown state: trust no own claim", "lease.go",
		"	if !valid {\n		return c\n	}\n	l.adopt", "	if !valid && !(c.own && r.kind == kindClaim) {\n		return c\n	}\n	l.adopt", "TestLeaseSimulation"},
	{"unknown state: adopt no doubtful beat", "lease.go",
		"	if !valid {\n		return c\n	}\n	l.adopt", "	l.adopt", "TestLeaseSimulation"},
	{"the leader takes the longer of both clocks", "vector.go",
		"	return max(t.mono-s.mono, t.wall-s.wall)\n", "	return t.mono - s.mono\n", "TestLeaseSimulation"},
	{"the claimant takes the monotonic clock", "lease.go",
		"l.claiming == 0 && now.mono >= l.claimAt(in.delay)", "l.claiming == 0 && max(now.mono, now.wall-l.quiet.wall+l.quiet.mono) >= l.claimAt(in.delay)", "TestLeaseSimulation"},
	// The next two put the clock back by as much as a poll, or a request, may take.
	{"quiet is read after the poll", "arbiter_lease.go",
		"now := a.now() // not before the record is in hand", "now := a.now().add(-pollSlice)", "TestReadingComesBeforeTheClock"},
	{"the boot clock is read after the offsets are known", "arbiter_lease.go",
		"		l.start(e.offset, now)\n", "		l.start(e.offset, now.add(-2*time.Second))\n", "TestBootClockComesAfterTheOffsets"},
	{"stop the work before Release", "handover.go",
		"case h.asked && h.done:", "case h.asked:", "TestDrainBeforeRelease"},
	{"nothing is begun once the work is said to be done", "arbiter_lease.go",
		"			a.Done([]int{p})\n", "", "TestNoLeaderAfterTheBarrierReturned"},
	{"leadership is looked at again after the clock was read", "internal/term/published.go",
		" || s.published.Load() != of {", " {", "TestLeadsLooksAgainAfterTheClock"},
	{"V is loaded before the clock is read", "internal/term/published.go",
		"!t.young(at, *v)", "!t.young(at, *of.line.v.Load())", "TestLeadsReadsVFirst"},
	{"who asks for any looks again if the lowest has ended", "internal/term/published.go",
		"if l.lowest.Load() == lowest {", "if true {", "TestLeadsAnyMissesNothing"},
	{"what the application was told is over is not told again", "internal/term/collect.go",
		"e.request == nil && !e.over:", "e.request == nil:", "TestWhatWasToldOverStaysOver"},
	{"all that is revoked together is due by the earliest deadline", "deliver.go",
		"return cmp.Compare(a.Deadline.Mono, b.Deadline.Mono)", "return cmp.Compare(0, 0)", "TestRevokedDeadlineIsTheEarliest"},
	{"what was in the log before is no news", "holder.go",
		" || l.last < l.live", "", "TestOldRecordsAreNoNews"},
	{"silence tells the watchers", "arbiter_lease.go",
		"(!ok || silent < at)", "false", "TestSilenceIsNoticedInTime"},
	{"a lost session nominates for nothing new", "arbiter_lease_intent.go",
		"	a.nominated = named\n", "	for p := range named {\n		named[p] = named[p] || a.retained[p]\n	}\n	a.nominated = named\n", "TestNothingNewIsClaimedAfterTheSessionIsLost"},
	{"contexts of what is lost end while the barrier is at work", "lead.go",
		"			for _, c := range l.n.arb.peek() {\n				l.cancel(c)\n			}\n", "", "TestContextsEndWhileTheBarrierIsAtWork"},
	{"what a barrier that panicked left is told", "deliver.go",
		"	n.pending = n.pending[i:]\n", "	rest := n.pending[i:]\n	n.pending = nil\n	defer func() { n.pending = rest }()\n	if len(rest) > 0 {\n		defer func() {\n			if r := recover(); r != nil {\n				rest = nil\n				panic(r)\n			}\n		}()\n	}\n", "TestPanickingBarrier"},
	{"R is one and the same for the check and the arbiter", "neli.go",
		"		p.roles = r\n		n.roles.Store(int64(r)) // with the lock held, or two calls could leave two different ones\n", "		p.roles = r\n		go n.roles.Store(int64(r))\n", "TestSetRolesFromSeveralGoroutines"},
	{"roles that SetRoles does away with may finish", "lead.go",
		"	id, _, _, ok := l.n.arb.table().Leads(l.n.arb.units().of(l.Role))\n", "	id, _, ok := l.n.term(l.Role)\n", "TestRolesThatGoFinish"},
	{"an event names the roles that go", "deliver.go",
		"	if p < below {\n", "	if true {\n", "TestRolesThatGoFinish"},
	{"the deadline is a monotonic reading", "deliver.go",
		"time.Now().Add(instantOf(first.Deadline).mono - n.now().mono)", "instantOf(first.Deadline).time()", "TestDeadlineIsMonotonic"},
	{"only the driver with the turn is heard, at a glance", "pulser.go",
		"ok && len(n.driver) == 0", "ok", "TestHungTaskBesideAPulse"},
	{"only the driver with the turn is heard, in a wait", "pulser.go",
		"	if !n.takeTurn(timeout, stop) {\n", "	n.heard()\n	if !n.takeTurn(timeout, stop) {\n", "TestHungTaskBesideAPulse"},
	{"a task that ends its goroutine gives up", "pulser.go",
		"		n.stepDown()\n	}()\n", "	}()\n", "TestTaskThatEndsItsGoroutine"},
	{"a fatal end waits for no check of health", "neli.go",
		"		close(n.done)\n		health.stop() //", "		health.stop()\n		close(n.done) //", "TestFatalEndBesideAHungCheck"},
	{"beats stop when the application hangs", "neli.go",
		"return n.waiting.Load() > 0 ||", "return true ||", "TestHungApplicationIsReplaced"},
	{"the topic's identity is checked", "kafka_topic.go",
		"case info.ID != t.id:", "case false:", "TestTopicReplaced"},
	{"what is queued for another topic is purged", "kafka_log.go",
		"	k.producer.Purge()\n", "", "TestReplacedTopicIsPurged"},
	{"a sealed log takes nothing", "kafka_log.go",
		"	if k.sealed.Load() {\n		return errSealed", "	if false {\n		return errSealed", "TestNothingIsAppendedToAReplacedTopic"},
	{"the reader seals the log of a replaced topic", "kafka_log.go",
		"; err != nil {\n			k.seal()\n		}\n		return logEntry{}", "; err != nil {\n		}\n		return logEntry{}", "TestNothingIsAppendedToAReplacedTopic"},
}

func TestRulesAreGuarded(t *testing.T) { areGuarded(t, mutations) }

// areGuarded removes each of these rules and runs its guard.
func areGuarded(t *testing.T, mutations []mutation) {
	if os.Getenv("NELI_MUTANT") != "" {
		return // this is the test of a mutant
	}
	slots := make(chan struct{}, max(1, runtime.NumCPU()))
	for _, m := range mutations {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			out, failed := testMutant(t, m)
			require.True(t, failed, "%s passes without this rule:\n%s", m.guard, out)
			require.Contains(t, out, "--- FAIL: "+m.guard, "the mutant did not build or did not run")
		})
	}
}

// testMutant runs the guard of a rule on a library without it.
func testMutant(t *testing.T, m mutation) (string, bool) {
	return runMutant(t, m, "NELI_SEEDS=6000")
}

func runMutant(t *testing.T, m mutation, env ...string) (string, bool) {
	source, err := os.ReadFile(m.file)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), m.old), "%s has changed: adapt the mutation", m.file)
	dir := t.TempDir()
	mutant := filepath.Join(dir, filepath.Base(m.file))
	require.NoError(t, os.WriteFile(mutant, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600))
	original, err := filepath.Abs(m.file)
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutant}})
	require.NoError(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, overlay, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-gcflags=-l", "-ldflags=-s -w", "-count=1", "-overlay", overlayFile, "-run", "^"+m.guard+"$", "./"+filepath.Dir(m.file))
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "NELI_MUTANT=1"), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err != nil
}
