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
// source by go's -overlay; what is looked for is the violation that the rule
// prevents.
var simMutations = []struct {
	mutation
	violation string // a regular expression
}{
	{mutation{"silence wait", "lease.go",
		"		at += l.wait\n", "", "TestSimulation"}, twoLeaders},
	{mutation{"stamp taken at send, not at receipt", "lease.go",
		"			return l.sent[i].stamp\n", "			return now\n", "TestSimulation"}, twoLeaders},
	{mutation{"a claimant has read the holder's newest valid record", "lease.go",
		"valid := r.read >= l.last ||", "valid := r.kind == kindClaim || r.read >= l.last ||", "TestSimulation"}, twoLeaders},
	{mutation{"fenced in log order by a foreign claim", "lease.go",
		"		l.mine = noToken // fenced, in log order\n", "", "TestSimulation"}, twoLeaders},
	{mutation{"T′ corrected for drift", "lease.go",
		"time.Duration(float64(t)*(1+drift)/(1-drift))", "t", "TestSimulation"}, twoLeaders},
	{mutation{"stop the work before Release", "handover.go",
		"case h.asked && h.done:", "case h.asked:", "TestSimulation"}, "while its work goes on"},
	{mutation{"a fresh id for each incarnation", "lease.go",
		"	l.me = l.newID()\n", "	l.me = l.name\n", "TestSimulation"}, twoLeaders + "|while its work goes on"},
	{mutation{"caution while the history is not known", "lease.go",
		"	l.token = tokenUnknown\n", "	l.token = tokenNone\n", "TestSimulation"}, twoLeaders},
	{mutation{"beats stop when the application hangs", "neli.go",
		"return n.waiting.Load() > 0 ||", "return true ||", "TestSimulation"}, "application has hung"},
	{mutation{"beats restart the wait", "lease.go",
		"	l.quiet = now\n	if !valid {", "	if r.kind != kindBeat {\n		l.quiet = now\n	}\n	if !valid {", "TestSimulation"}, twoLeaders + "|the witness"}, // the witness tells a wrong age
	{mutation{"V moves on read-back, not on send", "lease.go",
		"		return l.send(kindBeat, l.mine, now), true\n", "		l.v = now\n		return l.send(kindBeat, l.mine, now), true\n", "TestSimulation"}, twoLeaders},
	{mutation{"the leader takes the longer of both clocks", "vector.go",
		"	return max(t.mono-s.mono, t.wall-s.wall)\n", "	return t.mono - s.mono\n", "TestSimulation"}, twoLeaders},
	{mutation{"who receives nothing makes room", "arbiter_vector.go",
		"p >= 0 && now.mono >= at {", "false && at > 0 && p > 0 {", "TestSimulation"}, "no leader for"},
	{mutation{"who leads is told with the age of what was read", "holder.go",
		"Age: now.ageAtMost(l.quiet)", "Age: now.ageAtMost(l.since)", "TestSimulation"}, "the witness has read of"},
	{mutation{"an observer says no Hello", "arbiter_lease_intent.go",
		"	if a.set.observer {\n", "	if false {\n", "TestSimulation"}, "the witness writes"},
}

const twoLeaders = "is led by|after token|is not a valid claim of its own"

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
			out, failed := runMutant(t, m.mutation, "NELI_SEEDS=1000")
			require.True(t, failed, "no violation without this rule:\n%s", out)
			require.Contains(t, out, "VIOLATION: ", "the mutant did not build or did not run")
			require.Regexp(t, "VIOLATION: .*("+m.violation+")", out)
			t.Log(found.FindString(out), replay.FindString(out))
		})
	}
}
