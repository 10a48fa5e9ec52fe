// Package watch wakes those who wait for changes, and shares looks among those who look at the same time.
package watch
