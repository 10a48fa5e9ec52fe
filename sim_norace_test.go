//go:build !race

package neli_test

const (
	// simSeeds is how many seeds TestSimulation runs unless told otherwise.
	simSeeds = 2000
	// simRepeats is how many of twenty seeds must repeat exactly.
	simRepeats = 10
)
