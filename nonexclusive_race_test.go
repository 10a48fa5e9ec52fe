//go:build race

package neli_test

// sharedSeeds is how many seeds TestSharedSimulation runs unless told otherwise.
const sharedSeeds = 30
