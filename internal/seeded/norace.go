//go:build !race

package seeded

// Race says that the race detector is on.
const Race = false
