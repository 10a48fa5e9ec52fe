package plan

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var size = Size{Members: 5, Brokers: 3, Roles: 3}

var all = []string{SlowFollowers, FullDisks, Clocks, NewTopics}

func take(steps iter.Seq[Step], n int) []Step {
	var out []Step
	for s := range steps {
		if out = append(out, s); len(out) == n {
			break
		}
	}
	return out
}

func TestSameSeedGivesSamePlan(t *testing.T) {
	assert.Equal(t, take(Steps(7, size), 100), take(Steps(7, size), 100))
	assert.NotEqual(t, take(Steps(7, size), 5), take(Steps(8, size), 5))
}

func TestEveryKindOccursBeforeAnyRepeats(t *testing.T) {
	var first []string
	for _, s := range take(Steps(3, size, all...), len(kinds)) {
		first = append(first, s.Kind)
	}
	assert.ElementsMatch(t, Kinds(all...), first)
	assert.NotContains(t, Kinds(), "broker's disk full")
}

// The cluster is built to survive all faults of the plan.
func TestFaultsStayWithinTheAssumptions(t *testing.T) {
	for seed := range uint64(50) {
		for _, s := range take(Steps(seed, size, all...), 50) {
			brokers := 0
			for _, p := range s.Parts {
				if p.Action.DisturbsBrokers() {
					brokers++
				}
				assert.Less(t, p.Member, size.Members)
				assert.Less(t, p.To, size.Members)
				assert.Less(t, p.Broker, size.Brokers)
				assert.Less(t, p.Role, size.Roles)
				if p.Action == CutBrokers {
					assert.NotEqual(t, p.Broker, p.Other)
				}
			}
			assert.LessOrEqual(t, brokers, 1, "%+v", s)
			assert.Positive(t, s.Quiet)
		}
	}
}

func TestOnly(t *testing.T) {
	for _, s := range take(Only(Steps(1, size), []string{"broker killed"}), 3) {
		assert.Equal(t, "broker killed", s.Kind)
	}
	assert.NoError(t, Check([]string{"peer killed"}, PeerKinds()))
	assert.ErrorContains(t, Check([]string{"broker kiled"}, Kinds()), "broker kiled")
}

// The kinds that are to come first occur once, in the order named. All others occur as they would have.
func TestFirst(t *testing.T) {
	names := []string{"link between brokers cut for long", "broker killed"}
	got := take(First(Steps(3, size, all...), names, len(kinds)), 2*len(kinds))
	assert.Equal(t, names, []string{got[0].Kind, got[1].Kind})
	want := take(Steps(3, size, all...), 2*len(kinds))
	assert.ElementsMatch(t, want, got)
	assert.Equal(t, want[len(kinds):], got[len(kinds):], "the first round only")
	rest := slices.DeleteFunc(slices.Clone(want[:len(kinds)]), func(s Step) bool { return slices.Contains(names, s.Kind) })
	assert.Equal(t, rest, got[2:len(kinds)])
	assert.Equal(t, want, take(First(Steps(3, size, all...), nil, len(kinds)), 2*len(kinds)))
}

// Kafka's reaction to a silent broker is tested only if the broker is silent for longer than Kafka
// waits. A link must also be cut for longer than T.
func TestSomeFaultsOutlastKafkasTimeouts(t *testing.T) {
	for _, s := range take(Only(Steps(1, size), []string{"broker frozen past its session"}), 50) {
		assert.Equal(t, StopBroker, s.Parts[0].Action)
		assert.Greater(t, s.Parts[0].Hold, BrokerSession+5*time.Second)
	}
	for _, s := range take(Only(Steps(1, size), []string{"link between brokers cut for long"}), 50) {
		assert.Equal(t, CutBrokers, s.Parts[0].Action)
		assert.GreaterOrEqual(t, s.Parts[0].Hold, 12*time.Second)
		assert.Less(t, s.Parts[0].Hold, 40*time.Second)
	}
}
