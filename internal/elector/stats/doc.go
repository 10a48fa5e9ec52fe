// Package stats counts what happens, and for how long roles have no leader. It decides nothing.
package stats
