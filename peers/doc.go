/*
Package peers elects leaders without a broker: three or five processes keep a small
ordered log each, in memory, and a role is led by whoever holds it in more than half of
them. It is a provider for package neli, whose API stays the same.

	n, err := neli.New(neli.Config{
		LeaderGroupID: "invoicing",
		Provider: peers.Provider(peers.Config{
			Hosts: []peers.Host{{ID: "a", Address: "a.example:7400"}, …},
			Self:  "a", // this process has log a inside itself
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

What exclusive mode of package neli does: at most one leader of a role at every instant,
and tokens that strictly increase. Who leads goes on while more than half of the logs can
be reached by it; the death of the others disturbs nobody. After the death of a leader,
with or without its log, another one leads when its lease is over.

Of the logs: an incarnation has a random id of 128 bits, by which all know that a log has
lost its memory. Its records are read in one order, each once, without a gap; who reads
too slowly is cut off, and begins anew.

# What it does not promise

A log does not outlive its process. Two processes that serve a log of the same id at the
same time can make two leaders: what is behind an address must be one process, and a host
is replaced only when the former one is dead for certain. Tokens rest on wall clocks that
are within half a lease of each other after a log has lost its memory, unless there are
files (Config.TopFile).

# How

Members speak gRPC with the hosts; the document docs/peers.md has the reason, failures,
sizing, security, and how to replace a host. Package smalllog is the log, pure. A host
compares what a client says of the group, its timing and the list with its own, refuses
who disagrees, and then pushes every record to it. A link is a process's way to one
host: it reads on where it was after any trouble, gives a silent connection up after T,
and reports each record that it was given exactly once.
*/
package peers
