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

// deepConfigs want some gigabytes: NELI_MODEL=deep adds them.
var deepConfigs = []modelConfig{
	{name: "deep: one log that forgets, and tells the largest ballot", logs: 1, start: held, records: 3, flight: 2, forgets: 1, tops: true},
	{name: "deep: one log that forgets twice", logs: 1, start: held, records: 2, flight: 2, forgets: 2, snapshots: true},
	{name: "deep: three logs", logs: 3, start: cold, records: 3, flight: 2},
	{name: "deep: three logs, one of which forgets", logs: 3, start: joined, records: 2, flight: 2, forgets: 1},
	{name: "deep: three logs, two of which forget", logs: 3, start: held, records: 1, flight: 1, forgets: 2},
}

// TestModel goes through every state that two processes can reach on one or three logs
// within bounds, whatever their callers, the logs, the way there, and time do.
func TestModel(t *testing.T) {
	if seeded.Race {
		t.Skip("one goroutine, of which the race detector has nothing to see: make sim runs it")
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

// TestModelRefutesWhatIsPlausible has the model find what is wrong with rules that are as
// plausible as the one that ships, and with what is excluded by assumption.
func TestModelRefutesWhatIsPlausible(t *testing.T) {
	if seeded.Race {
		t.Skip("one goroutine, of which the race detector has nothing to see: make sim runs it")
	}
	for _, c := range []struct {
		modelConfig
		want string
	}{
		// A process that knows nothing has missed a whole term: its fresh Claim is late, and
		// nobody holds anything. In place of going beyond all ballots when it reads it back, a
		// rule of the fold could want that a Claim exceeds them. But a fresh one cannot know.
		{modelConfig{name: "a Claim must exceed the largest ballot in the log, in place of going beyond it at read-back",
			logs: 1, start: cold, records: 3, flight: 2, rule: exceeds}, "token went back"},
		// So let that be wanted of fresh ones, too: of the ballots that a reader knows of. Whose
		// wall clock is behind is not believed by those who have read more than it has, and is by
		// itself.
		{modelConfig{name: "and a fresh Claim must, too", logs: 1, start: joined, records: 3, flight: 2, rule: exceedsToo,
			walls: [2]time.Duration{0, -10 * modelT}, leaders: true}, "two (leaders|holders)"},
		// A log host that is restored from an image of its memory goes on under an id that it had
		// before: beats lie where others have read already, and are not heard by them.
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

// search goes through everything that c allows, until something is wrong.
func search(c *modelConfig) *explore.Search[*modelWorld] {
	var coder modelCoder
	return explore.All(func() *modelWorld { return newModelWorld(c) }, coder.encode)
}
