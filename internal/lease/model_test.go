package lease

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
	{name: "two processes, two roles", ts: []time.Duration{modelLong, modelLong}, roles: 2, records: 3, flight: 2},
	{name: "a jump", ts: []time.Duration{modelLong, modelLong}, roles: 1, records: 3, flight: 2, begins: 1},
	{name: "a jump, Snapshots", ts: []time.Duration{modelLong, modelLong}, roles: 1, records: 3, flight: 2, begins: 1, snapshots: true},
	{name: "a record twice", ts: []time.Duration{modelLong, modelLong}, roles: 1, records: 3, flight: 2, doubles: 1},
	{name: "a late joiner", ts: []time.Duration{modelLong, modelLong}, roles: 1, records: 3, flight: 3, snapshots: true, held: true},
	{name: "two late joiners", ts: []time.Duration{modelLong, modelLong, modelLong}, roles: 1, records: 2, flight: 2, held: true},
	{name: "a short and a long lease", ts: []time.Duration{modelShort, modelLong}, roles: 1, records: 3, flight: 2},
	{name: "short leases join a long one", ts: []time.Duration{modelLong, modelShort, modelShort}, roles: 1, records: 2, flight: 2, snapshots: true, held: true},
	{name: "from the origin", ts: []time.Duration{modelLong, modelLong}, roles: 1, records: 3, flight: 2, origin: true},
	{name: "from the origin, a jump", ts: []time.Duration{modelShort, modelLong}, roles: 1, records: 2, flight: 2, begins: 1, origin: true},
	{name: "newer versions", ts: []time.Duration{modelShort, modelLong}, roles: 1, records: 2, flight: 2, newer: 1, snapshots: true, held: true},
}

// deepConfigs have 4.4 million states more and need several gigabytes. NELI_MODEL=deep adds them.
var deepConfigs = []modelConfig{
	{name: "deep: two late joiners", ts: []time.Duration{modelLong, modelLong, modelLong}, roles: 1, records: 3, flight: 2, held: true},
	{name: "deep: a short and a long lease, Snapshots", ts: []time.Duration{modelShort, modelLong}, roles: 1, records: 3, flight: 2, snapshots: true},
	{name: "deep: from the origin, a jump", ts: []time.Duration{modelShort, modelLong}, roles: 1, records: 3, flight: 2, begins: 1, origin: true},
	{name: "deep: newer versions, two records", ts: []time.Duration{modelShort, modelLong}, roles: 1, records: 2, flight: 2, newer: 2, snapshots: true, held: true},
}

// TestModel visits every state that the Lease can reach within bounds, whatever its caller, the
// log, and the clocks do.
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

// search visits every state that c allows, until it finds a fault.
func search(c *modelConfig) *explore.Search[*modelWorld] {
	var coder modelCoder
	return explore.All(func() *modelWorld { return newModelWorld(c) }, coder.encode)
}
