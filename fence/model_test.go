package fence

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/explore"
	"github.com/goneli/neli/internal/seeded"
)

// protocols are the versions of transactions that brokers and clients may speak.
var protocols = []struct {
	name       string
	broker, v2 bool
}{
	{"V2", true, true},
	{"V2 brokers, V1 client", true, false},
	{"V1", false, false},
}

var modelConfigs = []modelConfig{
	{name: "two terms, two transactions each", terms: 2, work: 2},
	{name: "two terms, two faults", terms: 2, work: 2, faults: 2},
	{name: "three terms", terms: 3, work: 1},
	{name: "ids expire and rotate, beside another role", terms: 2, work: 1, faults: 2, expire: true, rotate: true, other: true},
	{name: "the application aborts, too", terms: 2, work: 1, faults: 1, aborts: true},
	{name: "asked before each commit instead", terms: 2, work: 1, faults: 1, atCommit: true},
}

// deepConfigs have some 20 million states: NELI_MODEL=deep adds them.
var deepConfigs = []modelConfig{
	{name: "deep: two terms, three faults", terms: 2, work: 2, faults: 3},
	{name: "deep: the application aborts, too", terms: 2, work: 2, faults: 2, aborts: true},
	{name: "deep: three terms, one fault", terms: 3, work: 1, faults: 1},
	{name: "deep: three terms, two faults", terms: 3, work: 1, faults: 2},
}

// TestModel visits everything that may happen to Transactions within bounds.
func TestModel(t *testing.T) {
	if seeded.Race {
		t.Skip("one goroutine, of which the race detector has nothing to see: make sim runs it")
	}
	configs := modelConfigs
	if os.Getenv("NELI_MODEL") == "deep" {
		configs = append(configs, deepConfigs...)
	}
	for _, p := range protocols {
		for _, c := range configs {
			c.v2, c.v2Cli = p.broker, p.v2
			t.Run(p.name+"/"+c.name, func(t *testing.T) {
				began := time.Now()
				s := search(&c)
				t.Logf("%d states, %d steps, %.1f s", s.States(), s.Moves, time.Since(began).Seconds())
				require.Empty(t, s.Fault, "%s\n%s", c.name, s)
			})
		}
	}
}

func search(c *modelConfig) *explore.Search[modelWorld] {
	return explore.All(func() modelWorld { return newModelWorld(c) }, encodeModel)
}

// TestModelRefutesWrongRules finds the fault in plausible but wrong rules, and with brokers on which the
// rules are not enough.
func TestModelRefutesWrongRules(t *testing.T) {
	if seeded.Race {
		t.Skip("one goroutine, of which the race detector has nothing to see: make sim runs it")
	}
	for _, c := range []struct {
		modelConfig
		want string // "": any of them
	}{
		{modelConfig{name: "nobody asks after the init", unchecked: true}, modelFaults[fLate]},
		{modelConfig{name: "asked after the first init only", checkOnce: true, faults: 2}, modelFaults[fLate]},
		{modelConfig{name: "a term goes on with the former one's producer", reuse: true}, modelFaults[fLate]},
		{modelConfig{name: "the producer is made before the term", early: true}, ""},
		{modelConfig{name: "another transactional.id in each term", idPerTerm: true}, modelFaults[fLate]},
		{modelConfig{name: "IsLeaderOf in place of Valid", ofRole: true, terms: 3, work: 1}, modelFaults[fLate]},
		{modelConfig{name: "the state is read before the init", readFirst: true}, modelFaults[fRead]},
		{modelConfig{name: "the state is read to the last stable offset", readStable: true, other: true}, modelFaults[fRead]},
		{modelConfig{name: "the client initialises again by itself", recovery: unguarded, faults: 1}, modelFaults[fLate]},
		{modelConfig{name: "and guarded, and ids expire", recovery: guarded, expire: true, faults: 2}, modelFaults[fLate]},
		{modelConfig{name: "an init does not raise the epoch", noBump: true}, modelFaults[fLate]},
		{modelConfig{name: "an init succeeds while a commit is being written", busyInit: true}, ""},
		{modelConfig{name: "brokers do not verify", noVerify: true, aborts: true, faults: 2}, ""},
	} {
		for _, p := range protocols {
			if c.noVerify && p.v2 {
				continue // a V2 client cannot send batches without it
			}
			c.v2, c.v2Cli = p.broker, p.v2
			if c.terms == 0 {
				c.terms, c.work = 2, 2
			}
			t.Run(p.name+"/"+c.name, func(t *testing.T) {
				s := search(&c.modelConfig)
				t.Logf("%d states: %s", s.States(), s.Fault)
				if c.want == "" {
					require.Contains(t, []string{modelFaults[fLate], modelFaults[fRead], modelStuck}, s.Fault)
					return
				}
				require.Equal(t, c.want, s.Fault)
			})
		}
	}
}
