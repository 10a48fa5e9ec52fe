//go:build race

package neli_test

import "github.com/goneli/neli/internal/sim"

// crowdSize is how many TestOutage and TestScale count.
var crowdSize = sim.Size{Members: 12, Partitions: 1, Roles: 1_000}

// restartSize is how many TestRestart counts.
var restartSize = sim.Size{Members: 12, Partitions: 1, Roles: 1_000}

const (
	// simSeeds is how many seeds TestSimulation runs unless told otherwise.
	simSeeds = 60
	// smallSeeds is how many seeds TestSmallSimulation runs unless told otherwise.
	smallSeeds = 20
)
