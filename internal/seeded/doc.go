// Package seeded is what simulations of pure protocols stand on: a World in which things
// happen one after the other in true time, everything drawn from one seed, and Run, which
// tries seed after seed until one goes wrong.
//
//	type world struct {
//		seeded.World
//		…                       the logs, the processes, the oracle
//	}
//	func one(seed uint64) *world    draws a world, lets it run: w.Run(horizon, nil)
//	seeded.Run(t, n, one, …)
//
// It knows nothing of leases. Who simulates whole processes, with goroutines and timers of
// their own, wants testing/synctest, and internal/sim. It is for tests only.
package seeded
