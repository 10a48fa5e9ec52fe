// Package sim runs whole processes of the library, unchanged, under an adversary: each
// seed makes a cluster of a few of them in a testing/synctest bubble, over the Kafka in
// memory of package nelitest, and an oracle that knows everything asserts throughout.
//
//	              seed
//	               │ draw
//	               ▼
//	plan ──► world ──► proc: a Neli, its clock (clock.go), an application (app.go)
//	          │          │ spy.go: all that it sends and reads
//	          │          ▼
//	  faults.go        oracle.go: leaders, tokens, events, orders, recovery in time
//	  wills.go asks.go truth.go: the fold of the log from offset 0, by an implementation of its own
//	                   witness.go: an observer whose every word is checked
//
// It imports the library as its users do. What needs the inside, a constructor that takes
// a clock, is handed in, as etcd's rafttest has it:
//
//	func TestSimulation(t *testing.T) { sim.Suite(t, options) }
//
//	NELI_SEED=n go test -run 'TestSimulation$'      replays a seed, with its transcript
//	NELI_SEEDS=n go test -run 'TestSimulation$'     the first n seeds
//	NELI_SOAK=10m go test -run 'TestSimulation$'    new seeds for ten minutes
//
// # Small logs
//
// SuiteSmall, and RunSmall for one seed, run processes on a majority of small logs, those of
// package nelitest: with an adversary of its own (small_faults.go: logs stop, forget, members
// are cut off one way or both, halves that heal, records that are late by two leases, clocks
// at ± ρ) and those of the oracle's promises that need no log of Kafka's (small_proc.go). A
// log that comes back from an image of its memory, with an id that it had before, is
// excluded; package quorum's model shows why.
//
// # Sentinels
//
// With Options.Hub there are one or two sentinels beside the members (sentinels.go): the library's own,
// over a kernel that tells them of deaths late, twice or never. They are killed, suspended, cut off and
// behind; processes die with Claims under way, which take effect after their death; and so do their
// successors. The oracle is the same, and wants in addition that a Release that its process has not sent is of one that
// has died.
//
// # The adversary
//
// Clocks: each process has a raw clock with a rate of 1 ± ρ; its ordinary clocks run at
// that times 1 ± σ, changing now and then as a time daemon slews them, and its wall clock
// is set. A suspended process does nothing; with its machine, the raw and the monotonic
// clock stand still and the others go on. In some seeds a hypervisor pauses it, and all
// four stand still: that is excluded from the promise, and tokens alone are judged.
//
// Members: of different T, R, priority and opinion, restarted with others; some thousands
// of roles, several partitions. Records that are late, doubled, overtaken, lost; rubbish,
// copies of another cluster's, records of a newer version; a head that is deleted. Links
// that are cut one by one, a broker that goes and comes, a group that rebalances. Wishes:
// SetRoles, Transfer, StepDown, Healthy, Close; requests of others for the same, and forged ones,
// which applications accept or refuse.
//
// # The oracle
//
// At every true instant at most one process leads a role. Tokens of a role increase, and
// each is a Claim of its leader that is valid by the true fold. What a process says of
// who holds what is what the true fold says at the offset that it has read. Each Acquired
// is followed by one Revoked or Fenced, and IsLeader is false from then on. Work is not
// succeeded before it has ended, or had its time. Nobody gives anything up for a request that
// its application has not accepted. In the end everything heals, and then
// every role is led within a bound that is made of the design's constants, not of the
// code's. Without faults nothing is ever lost.
//
// What it does not know: brokers that diverge, and timers that run at another rate than
// true time (a process with a slow clock is woken early, one with a fast clock late).
package sim
