//go:build race

package neli

// modelRace makes TestModel small: the race detector takes ten times as long.
const modelRace = true
