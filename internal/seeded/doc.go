// Package seeded is the basis of simulations of pure protocols. In a World, things happen one
// after the other in true time, and everything is drawn from one seed. Run tries one seed after
// another until one fails.
//
//	type world struct {
//		seeded.World
//		…                       the logs, the processes, the oracle
//	}
//	func one(seed uint64) *world    draws a world, lets it run: w.Run(horizon, nil)
//	seeded.Run(t, n, one, …)
//
// It knows nothing about leases. To simulate whole processes, with goroutines and timers of their
// own, use testing/synctest and internal/sim. It is for tests only.
package seeded
