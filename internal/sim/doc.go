// Package sim runs whole processes of the library, unchanged, against an adversary. Each seed
// makes a cluster of a few processes in a testing/synctest bubble, over the in-memory Kafka of
// package nelitest. An oracle that knows everything asserts the promises throughout.
//
//	              seed
//	               │ draw
//	               ▼
//	plan ──► world ──► proc: a Neli, its clock (clock.go), an application (app.go)
//	          │          │ spy.go: all that it sends and reads
//	          │          ▼
//	  faults.go        oracle.go: leaders, tokens, events, orders, recovery in time
//	  wills.go asks.go truth.go: the fold of the log from offset 0, by a second implementation
//	                   witness.go: an observer whose reports are checked
//
// It imports the library as its users do. The one thing that needs the inside, a constructor that
// takes a clock, is passed in, as in etcd's rafttest:
//
//	func TestSimulation(t *testing.T) { sim.Suite(t, options) }
//
//	NELI_SEED=n go test -run 'TestSimulation$'      replays a seed, with its transcript
//	NELI_SEEDS=n go test -run 'TestSimulation$'     the first n seeds
//	NELI_SOAK=10m go test -run 'TestSimulation$'    new seeds for ten minutes
//
// # Small logs
//
// SuiteSmall, and RunSmall for one seed, run processes on a majority of package nelitest's small
// logs. They have an adversary of their own (small_faults.go): logs stop and forget; members are
// cut off one way or both; halves are cut apart and heal; records are late by up to two leases;
// clocks run at ± ρ. Their oracle checks the promises that need no Kafka log (small_proc.go). A
// log that comes back from an image of its memory, with its former id, is excluded; the model of
// package quorum shows why.
//
// # Sentinels
//
// With Options.Hub there are one or two sentinels beside the members (sentinels.go). They are the
// library's own, over a simulated kernel that tells them of deaths late, twice or never. They are
// killed, suspended, cut off, and made to lag. Processes and their successors die with Claims in
// flight, which take effect after that. The oracle also asserts that a sentinel releases only the
// roles of dead processes.
//
// # The adversary
//
// Clocks: each process has a raw clock with a rate of 1 ± ρ. Its ordinary clocks run at that rate
// times 1 ± σ, which changes now and then as a time daemon slews them, and its wall clock is set.
// A suspended process does nothing. If its machine is suspended, the raw and the monotonic clock
// stand still, and the others go on. In some seeds a hypervisor pauses the machine, and all four
// clocks stand still. That is outside the promise, so only tokens are checked then.
//
// Members have different T, R, priorities and preferences, and other ones after a restart. There
// are up to thousands of roles on several partitions. Records are late, doubled, overtaken, or
// lost. Logs contain rubbish, copies of another cluster's records, and records of a newer
// version, and their heads are deleted. Links are cut one by one, the broker stops and starts,
// and the group rebalances. Members call SetRoles, Transfer, StepDown and Close, and report bad
// health. They send each other requests, and strangers forge some; applications accept or refuse
// them.
//
// In a quarter of the seeds, one member, two, or half of them may be farther from the log than the
// others, by up to 400 ms and less than T/4 (far.go).
//
// # The oracle
//
// At every true instant, at most one process leads a role. Tokens of a role increase, and each is
// a Claim of its leader that is valid by the true fold. The holder that a process reports is the
// holder in the true fold, at the offset that the process has read. Each Acquired is followed by
// one Revoked or Fenced, and IsLeader is false from then on. No successor leads before the work
// has ended or its deadline has passed. A process gives up a role on request only if its
// application has accepted the request. In the end everything heals. Every role must then be led
// within a bound that is calculated from the design's constants, not from the code's. Without
// faults nothing is ever lost.
//
// It does not simulate brokers whose logs diverge, nor timers that run at another rate than true
// time (with a slow clock a process is woken early, with a fast one late).
package sim
