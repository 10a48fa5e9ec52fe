/*
Package neli elects leaders among the processes of a service that already uses
Kafka, with no further infrastructure. It implements the NELI protocol of
Koutanov's paper "Non-Exclusive Leader Induction in Highly Available Systems" in
both of its modes.

	n, err := neli.New(neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": "localhost:9092"},
		LeaderGroupID: "invoicing",
	})
	…
	p, err := n.Background(func() { … }) // called again and again while this process leads
	…
	err = p.Await()

# What it promises

Exclusive mode (the default): at every instant at most one process leads a role,
through pauses, suspensions and crashes of processes, partitions of the network,
delayed, lost or doubled records, and rebalances of any kind; every term has a
fencing token that is larger than those of all former leaders of the role. When a
leader fails, another one leads after about HeartbeatTimeout (Open nomination, the
default), or after the group's session timeout (Assigned); when a leader closes,
after a round trip or two.

Non-exclusive mode: a role has a leader at all times as long as the old leader
lives, be it cut off; during a change two overlap. After a crash there is none for
at most the session timeout plus a rebalance plus one beat; two disjoint groups
over the same roles cover for that.

# What it does not promise

No lease can call back work that was begun while it was valid: a process may be
suspended between the check and the deed. Where that matters, give the token to
the resource and let it refuse lower ones.

Exclusive mode rests on these, and on nothing else: the topic acknowledges by all
in-sync replicas and has unclean leader election off; it is not deleted or
recreated while the group lives (that is noticed, and fatal); only trusted
principals may write to it; clocks run at the same rate to within MaxClockDrift
(they need not agree); virtual machines are not snapshotted and cloned while they
run. Group membership, rebalance callbacks, commits and the broker's clock play no
part in safety.

# How it works

	 process a, holder        process b            process c
	┌──────────────────┐  ┌──────────────────┐  ┌──────────────────┐
	│ IsLeader:        │  │                  │  │                  │
	│ 0 ≤ now − V < T  │  │                  │  │                  │
	│      ▲           │  │                  │  │                  │
	│   lease, V       │  │   lease          │  │   lease          │  pure folds over
	└───┬──────▲───────┘  └──────▲───────────┘  └──────▲───────────┘  the same records
	    │ beat │ read back       │ read                │ read
	    ▼      │                 │                     │
	  ─────────────────────────────────────────────────────────────
	   partition: claim beat beat beat … release │ claim beat beat …
	  ─────────────────────────────────────────────────────────────
	              ▲ offset 17 = token                ▲ offset 42 = token

A partition of the leader topic is a totally ordered log, so it can arbitrate by
itself. The holder of a partition writes beats; V is the time, taken before it was
sent, of the newest own record that came back from the log. IsLeader is the check
0 ≤ now − V < T and nothing else: it turns false by itself. Everybody else follows
the log, and may claim a partition after a release, or after a silence so long that
the holder's lease must be over by any clock. A claim is valid if its sender had
read everything that mattered before it; its offset is the fencing token. The
consumer group, if there is one, only says who may claim.

With Open nomination the members share the partitions out among themselves: each
says Hello every five seconds, ranks the others on each vacant partition in the same
way as they do, and claims the later the more are before it. Leaders hand over, one
partition at a time, what is more than their share, to members that answer when they
are asked. Priority, Preference, Rebalance, Healthy, Transfer and StepDown are ways to
have a say in that. All of it is preference, and plays no part in safety.

Role j lives on partition j mod M, so thousands of roles need few partitions, and
all roles of a partition have the same leader.

# Who leads

In exclusive mode every process can tell who holds a role (Holder), follow the
changes (Watch) and name the members (Members); Config.Observer is for those that
do nothing else. What they say is about the past, with its age: it is for routing
and for people. It is no check of leadership.

# Reading on

Config has every setting with its default. Package nelitest has an in-memory
broker to test your own leadership code with, in simulated time. The README has
operations: topic settings, ACLs, tuning, and how to come from goNELI.
*/
package neli
