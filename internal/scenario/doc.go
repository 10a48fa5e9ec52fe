/*
Package scenario runs whole members, unchanged, on the in-memory broker of package
nelitest in simulated time: a rig for scripted scenarios, and the scenarios (its
tests). A sampler checks all members again and again and asserts the promise: at most
one leader of each role, and tokens that never go back and belong to one member each.

	Simulate ──▶ Cluster ── Work, Join ──▶ Member: a neli.Neli, its barrier and its task
	               │  ▲
	     a script  │  └── the sampler: every millisecond, every role
	               ▼
	            Broker ── CutOff, Kill, Suspend, Stop …

A scenario says what happens and when, and what must be true then. It tests what users
rely on: who leads, after how long, and what the application is told. What must hold under
any schedule is tested by the simulators (of packages sim, lease, quorum and nonexclusive),
which draw their schedules at random.
*/
package scenario
