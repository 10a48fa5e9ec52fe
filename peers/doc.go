/*
Package peers elects leaders without a broker. Three or five processes each keep a small
ordered log in memory, and a process leads a role if it holds it on more than half of the
logs. The package is a provider for package neli, whose API stays the same.

	n, err := neli.New(neli.Config{
		LeaderGroupID: "invoicing",
		Provider: peers.Provider(peers.Config{
			Hosts: []peers.Host{{ID: "a", Address: "a.example:7400"}, …},
			Self:  "a", // this process hosts log a
			TLS:   &peers.TLS{CertFile: …, KeyFile: …, CAFile: …},
		}),
	})

	  member a            member b            member c            member d
	┌───────────┐       ┌───────────┐       ┌───────────┐       ┌───────────┐
	│   neli    │       │   neli    │       │   neli    │       │   neli    │
	│           │       │           │       │           │       │           │
	│   log a   │       │   log b   │       │   log c   │       │   (none)  │
	└─────▲─────┘       └─────▲─────┘       └─────▲─────┘       └───────────┘
	      └───────────────────┴─── each appends ──┴─── to each log, and reads it

# What it promises

The same as exclusive mode of package neli: at most one leader of a role at every instant,
and tokens that strictly increase. A leader goes on as long as it reaches more than half of
the logs, whatever happens to the others. When a leader dies, with or without its log,
another process leads once its lease is over.

About the logs: each incarnation has a random id of 128 bits, which shows all processes when
a log has lost its memory. A reader gets an incarnation's records in one order, each once,
without a gap. A reader that is too slow is cut off, and begins again.

# What it does not promise

A log does not outlive its process. Two processes that serve a log of the same id at the
same time can make two leaders. So an address must stand for one process, and a host may be
replaced only when the old one is certainly dead. After a log has lost its memory, tokens
depend on wall clocks that are within half a lease of true time, unless there are files
(Config.TopFile).

# How

Members talk gRPC to the hosts. docs/peers.md explains the reasons, failures, sizing,
security, and how to replace a host or change the list (change.go). Package smalllog is the log itself. A host compares the
group, the timing and the list that a client announces with its own, refuses a client that
differs, and pushes every record to all that it serves. A link is a process's connection to one host.
After any trouble it reads on where it stopped. It gives up a silent connection after T (at least
250 ms), and reports each record that it accepted exactly once.
*/
package peers
