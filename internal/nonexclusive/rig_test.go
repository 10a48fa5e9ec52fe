package nonexclusive_test

import (
	"testing"

	"github.com/goneli/neli/internal/scenario"
	"github.com/goneli/neli/nelitest"
)

// Whole members in simulated time: package scenario's rig, under shorter names.
type (
	cluster = scenario.Cluster
	member  = scenario.Member
)

var (
	overlapping  = scenario.Overlapping
	simulateWith = scenario.Simulate
)

func simulate(t *testing.T, opts nelitest.Options, test func(c *cluster)) {
	t.Helper()
	scenario.Simulate(t, opts, nil, test)
}
