package quorum

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/explore"
	"github.com/goneli/neli/internal/seeded"
)

var modelConfigs = []modelConfig{
	{name: "one log", logs: 1, start: cold, records: 3, flight: 2},
	{name: "one log that forgets", logs: 1, start: held, records: 2, flight: 2, forgets: 1},
	{name: "one log that forgets, Snapshots", logs: 1, start: joined, records: 2, flight: 1, forgets: 1, snapshots: true},
	{name: "one log that forgets, wall clocks apart", logs: 1, start: joined, records: 2, flight: 1, forgets: 1,
		walls: [2]time.Duration{modelT * 45 / 100, -modelT * 45 / 100}},
	{name: "one log that forgets, wall clocks far apart", logs: 1, start: joined, records: 2, flight: 1, forgets: 1,
		walls: [2]time.Duration{10 * modelT, -10 * modelT}, leaders: true},
	{name: "three logs", logs: 3, start: cold, records: 2, flight: 2},
	{name: "three logs, one leads", logs: 3, start: held, records: 2, flight: 2},
	{name: "three logs, one of which forgets", logs: 3, start: held, records: 1, flight: 1, forgets: 1},
}

// deepConfigs need several gigabytes. NELI_MODEL=deep adds them.
var deepConfigs = []modelConfig{
	{name: "deep: one log that forgets, and tells the largest ballot", logs: 1, start: held, records: 3, flight: 2, forgets: 1, tops: true},
	{name: "deep: one log that forgets twice", logs: 1, start: held, records: 2, flight: 2, forgets: 2, snapshots: true},
	{name: "deep: three logs", logs: 3, start: cold, records: 3, flight: 2},
	{name: "deep: three logs, one of which forgets", logs: 3, start: joined, records: 2, flight: 2, forgets: 1},
	{name: "deep: three logs, two of which forget", logs: 3, start: held, records: 1, flight: 1, forgets: 2},
}

// TestModel visits every state that two processes can reach on one or three logs within bounds,
// whatever their callers, the logs, the network, and the clocks do.
func TestModel(t *testing.T) {
	if seeded.Race {
		t.Skip("one goroutine, in which there is no race to detect: make sim runs it")
	}
	configs := modelConfigs
	if os.Getenv("NELI_MODEL") == "deep" {
		configs = slices.Concat(modelConfigs, deepConfigs)
	}
	for _, c := range configs {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			s := search(&c)
			t.Logf("%d states, %d steps, %.1f s", s.States(), s.Moves, time.Since(began).Seconds())
			require.Empty(t, s.Fault, "%s\n%s", c.name, s)
		})
	}
}

// TestModelRefutesPlausibleRules lets the model find the fault in rules that are as plausible as
// the real one, and in situations that the assumptions exclude.
func TestModelRefutesPlausibleRules(t *testing.T) {
	if seeded.Race {
		t.Skip("one goroutine, in which there is no race to detect: make sim runs it")
	}
	for _, c := range []struct {
		modelConfig
		want string
	}{
		// A process that does not know the fold has missed a whole term. Its fresh Claim is late,
		// and nobody holds anything. Instead of raising the ballot when a Claim is read back, the
		// fold might require that a Claim exceed all ballots in the log. But the sender of a fresh
		// Claim cannot know them.
		{modelConfig{name: "a Claim must exceed the largest ballot in the log, instead of raising its own at read-back",
			logs: 1, start: cold, records: 3, flight: 2, rule: exceeds}, "token went back"},
		// So the fold might require it of fresh Claims, too, as far as a reader knows the ballots.
		// But a claimant whose wall clock is behind then wins by its own fold, and not by the folds
		// of processes that have read more.
		{modelConfig{name: "a fresh Claim must exceed it, too", logs: 1, start: joined, records: 3, flight: 2, rule: exceedsToo,
			walls: [2]time.Duration{0, -10 * modelT}, leaders: true}, "two (leaders|holders)"},
		// A log host that is restored from an image of its memory continues under its old id. Beats
		// then take offsets that others have read already, and these do not read them.
		{modelConfig{name: "a log comes back from an image of its memory, with the same id", logs: 1, start: held, records: 3,
			flight: 1, forgets: 1, rule: imageServes, leaders: true}, "two (leaders|holders)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := search(&c.modelConfig)
			t.Logf("%d states\n%s", s.States(), s)
			require.Regexp(t, c.want, s.Fault)
		})
	}
}

// search visits every state that c allows, until it finds a fault.
func search(c *modelConfig) *explore.Search[*modelWorld] {
	var coder modelCoder
	return explore.All(func() *modelWorld { return newModelWorld(c) }, coder.encode)
}
