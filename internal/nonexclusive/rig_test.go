package nonexclusive_test

import "github.com/goneli/neli/internal/scenario"

// Shorter names for the rig of package scenario, which runs whole members in simulated time.
type (
	cluster = scenario.Cluster
	member  = scenario.Member
)

var (
	overlapping  = scenario.Overlapping
	simulateWith = scenario.Simulate
)
