//go:build !race

package neli

const modelRace = false
