/*
Package scenario runs whole members, unchanged, on the in-memory broker of package
nelitest in simulated time: a rig for scripted scenarios, and the scenarios (its
tests). A sampler looks at every member again and again and asserts the promise: at
most one leader of each role, tokens that never go back and are one member's each.

	Simulate ──▶ Cluster ── Work, Join ──▶ Member: a neli.Neli, its barrier and its task
	               │  ▲
	     a script  │  └── the sampler: every millisecond, every role
	               ▼
	            Broker ── CutOff, Kill, Suspend, Stop …

A scenario says what happens and when, and what must be so then. It is for what users
rely on: who leads, after how long, what the application is told. What must hold under
any schedule is for the simulators (package lease's, and the root's), which draw
their schedules at random.
*/
package scenario
