//go:build race

package neli_test

const (
	// simSeeds is how many seeds TestSimulation runs unless told otherwise.
	simSeeds = 200
	// simRepeats is how many of twenty seeds must repeat exactly. The race detector's
	// scheduler draws lots.
	simRepeats = 3
)
