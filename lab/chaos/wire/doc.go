// Package wire is a network of hosts on one machine, with faults on command.
//
// A host is a network namespace without a name. It lives as long as the thread that made it, its processes and its descriptors,
// so nothing needs to be cleaned up however this process dies. Its only way out is a TUN device, and what it sends there arrives
// in this process, which carries it to the TUN device of the destination:
//
//	┌ namespace ┐                                  ┌ namespace ┐
//	│  broker   │   TUN   ┌──────────────┐   TUN   │  member   │
//	│ 10.77.0.3 ├────────►│ link 3 → 7   ├────────►│ 10.77.0.7 │
//	│           │◄────────┤ link 7 → 3   │◄────────┤           │
//	└───────────┘         └──────────────┘         └───────────┘
//
// Every ordered pair of hosts has a link with a policy of its own: cut, delay, jitter, loss. So a
// cut-off may be one-way, and needs neither tc netem nor a firewall: netem is missing from many
// kernels of virtual machines, and a user-space switch behaves the same on all of them.
//
// Linux only; it needs root.
package wire
