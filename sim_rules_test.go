package neli

import (
	"os"
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// The simulator of whole curators must find out when a rule is missing: this is
// what its green means. As in TestRulesAreGuarded the rule is removed from the
// source by go's -overlay. Which violation is reported first, and hides the rest,
// differs from run to run: the log has it.
var simMutations = []mutation{
	{"silence wait", "lease.go",
		"		at += l.wait\n", "", "TestSimulation"},
	{"stamp taken at send, not at receipt", "lease.go",
		"			return l.sent[i].stamp\n", "			return now\n", "TestSimulation"},
	{"a claimant has read the holder's newest valid record", "lease.go",
		"valid := r.read >= l.last ||", "valid := r.kind == kindClaim || r.read >= l.last ||", "TestSimulation"},
	{"fenced in log order by a foreign claim", "lease.go",
		"		l.mine = noToken // fenced, in log order\n", "", "TestSimulation"},
	{"T′ corrected for drift", "lease.go",
		"time.Duration(float64(t)*(1+drift)/(1-drift))", "t", "TestSimulation"},
	{"stop the work before Release", "handover.go",
		"case h.asked && h.done:", "case h.asked:", "TestSimulation"},
	{"a fresh id for each incarnation", "lease.go",
		"	l.me = l.newID()\n", "	l.me = l.name\n", "TestSimulation"},
	{"caution while the history is not known", "lease.go",
		"	l.token = tokenUnknown\n", "	l.token = tokenNone\n", "TestSimulation"},
	{"beats stop when the application hangs", "neli.go",
		"return n.waiting.Load() > 0 ||", "return true ||", "TestSimulation"},
	{"beats restart the wait", "lease.go",
		"	l.quiet = now\n	if !valid {", "	if r.kind != kindBeat {\n		l.quiet = now\n	}\n	if !valid {", "TestSimulation"},
	{"V moves on read-back, not on send", "lease.go",
		"		return l.send(kindBeat, l.mine, now), true\n", "		l.v = now\n		return l.send(kindBeat, l.mine, now), true\n", "TestSimulation"},
	{"the leader takes the longer of both clocks", "vector.go",
		"	return max(t.mono-s.mono, t.wall-s.wall)\n", "	return t.mono - s.mono\n", "TestSimulation"},
	{"who receives nothing makes room", "arbiter_vector.go",
		"p >= 0 && now.mono >= at {", "false && at > 0 && p > 0 {", "TestSimulation"},
	{"who leads is told with the age of what was read", "holder.go",
		"Age: now.ageAtMost(l.quiet)", "Age: now.ageAtMost(l.since)", "TestSimulation"},
	{"an observer says no Hello", "arbiter_lease_intent.go",
		"	if a.set.observer {\n", "	if false {\n", "TestSimulation"},
	{"who is not well claims nothing, and gives up", "arbiter.go",
		"!p.closing && !p.unhealthy && now", "!p.closing && now", "TestSimulation"},
	{"who has stepped down claims nothing for a while", "arbiter.go",
		"!p.unhealthy && now.mono >= p.away", "!p.unhealthy", "TestSimulation"},
	{"Transfer looks at who leads", "transfer.go",
		"case s.Holder.Member == id:", "case id != \"\":", "TestSimulation"},
	{"what was handed over stays for a while", "arbiter_lease_choice.go",
		"g == giftMoved && now.mono-l.since.mono >= minTenure", "g == giftMoved", "TestSimulation"},
	{"everybody gets a share", "balance.go",
		"if before >= len(lacking) {", "if before >= len(lacking) || mine > 0 {", "TestSimulation"},
	{"a check of health that hangs is an answer", "health.go",
		"		judge(errHealthHangs)\n", "", "TestSimulation"},
}

var (
	found  = regexp.MustCompile(`VIOLATION: .*`)
	replay = regexp.MustCompile(`NELI_SEED=\d+`)
)

func TestSimulatorNeedsEveryRule(t *testing.T) {
	if os.Getenv("NELI_MUTANT") != "" {
		return // this is the test of a mutant
	}
	slots := make(chan struct{}, max(1, runtime.NumCPU()))
	for _, m := range simMutations {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			out, failed := runMutant(t, m, "NELI_SEEDS=3000")
			require.True(t, failed, "no violation without this rule:\n%s", out)
			require.Contains(t, out, "VIOLATION: ", "the mutant did not build or did not run")
			t.Log(found.FindString(out), replay.FindString(out))
		})
	}
}
