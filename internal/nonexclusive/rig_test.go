package nonexclusive_test

import "github.com/goneli/neli/internal/scenario"

// Whole members in simulated time: the rig of package scenario, under shorter names.
type (
	cluster = scenario.Cluster
	member  = scenario.Member
)

var (
	overlapping  = scenario.Overlapping
	simulateWith = scenario.Simulate
)
