//go:build race

package seeded

// Race reports whether the race detector is on.
const Race = true
