package neli

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every rule of the protocol that lives in lease.go and vector.go is needed in
// the model too: without it, the named configuration has a counterexample of the
// named kind. The mutants are those of TestRulesAreGuarded.
//
// One of its rules has no line here. "A record that saw what lies ahead: start
// anew" shows only in a log that was truncated or recreated, where safety is
// excluded, and a leader follows without it as well; TestLeaseLogWentBack guards
// it.
var modelRules = []struct{ rule, config, fault string }{
	{"forget the token before sending Release", "drift2", faultAgain},
	{"a fresh id at every start", "jump2", faultAgain},
	{"a lapsed term ends", "progress2", faultStuck},
	{"re-claim only after read-back or failure", "progress2", faultStuck},
	{"claiming ends at start", "recreate2", faultStuck},
	{"position check before the foreign-record check", "recreate2", faultStuck},
	{"silence wait", "drift2", faultTwo},
	{"beats restart the wait", "drift2", faultTwo},
	{"doubtful records restart the wait while the state is unknown", "jump2", faultTwo},
	{"valid ⇔ last ≤ read", "drift2", faultTwo},
	{"beats move last", "drift2", faultTwo},
	{"releases move last", "jump2", faultTwo},
	{"V moves on read-back, not on send", "drift2", faultTwo},
	{"stamp taken at send, not at receipt", "drift2", faultTwo},
	{"T′ corrected for drift", "drift3", faultTwo},
	{"fenced in log order by a foreign claim", "drift2", faultTwo},
	{"a beat or a release is valid by its token", "drift2", faultTwo},
	{"unknown state: wait T′", "jump2", faultTwo},
	{"unknown state: trust no own claim", "jump2", faultTwo},
	{"unknown state: adopt no doubtful beat", "jump2", faultTwo},
	{"the leader takes the longer of both clocks", "suspend2", faultTwo},
	{"the claimant takes the monotonic clock", "suspend2", faultTwo},
}

// The model leaves out names, so it removes the matching by token in another way
// than TestRulesAreGuarded. That releases move last has no mutant there.
var modelMutations = []mutation{
	{"a beat or a release is valid by its token", "lease.go",
		"r.kind != kindClaim && r.token == l.token)", "r.kind != kindClaim)", ""},
	{"releases move last", "lease.go",
		"	l.last = o\n", "	if r.kind != kindRelease {\n		l.last = o\n	}\n", ""},
}

var modelFound = regexp.MustCompile(`\S[^\n]*, after \d+ actions`)

func TestModelNeedsEveryRule(t *testing.T) {
	if os.Getenv("NELI_MUTANT") != "" {
		return // this is the test of a mutant
	}
	all := slices.Concat(mutations, modelMutations)
	slots := make(chan struct{}, 2)
	for _, r := range modelRules {
		t.Run(r.rule, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			i := slices.IndexFunc(all, func(m mutation) bool { return m.rule == r.rule })
			require.GreaterOrEqual(t, i, 0, "no such mutation")
			m := all[i]
			m.guard = "TestModel/" + r.config
			out, failed := testMutant(t, m)
			require.True(t, failed, "the model has no counterexample without this rule:\n%s", out)
			require.Contains(t, out, "--- FAIL: "+m.guard, "the mutant did not build or did not run")
			require.Contains(t, out, "FAULT: "+r.fault, "another counterexample than expected")
			t.Log(modelFound.FindString(out))
		})
	}
}
