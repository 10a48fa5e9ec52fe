//go:build race

package neli_test

// simSeeds is how many seeds TestSimulation runs unless told otherwise.
const simSeeds = 200
