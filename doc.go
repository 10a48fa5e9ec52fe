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
	defer n.Close() // hands over
	err = n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error { … }) // while this process leads

# What it promises

Exclusive mode (the default): at every instant at most one process leads a role,
through pauses, suspensions and crashes of processes, partitions of the network,
delayed, lost or doubled records, and rebalances of any kind; every term of a role
has a fencing token that is larger than those of all former ones. When a leader
fails, another one leads after about its HeartbeatTimeout (Open nomination, the
default), or after the group's session timeout if that is longer (Assigned); when a
leader closes, after two records, its Release and a Claim.

Non-exclusive mode: a role has a leader at all times as long as the old leader
lives, be it cut off; during a change two overlap. After a crash there is none for
at most the session timeout plus a rebalance plus one beat; two disjoint groups
over the same roles cover for that.

# What it does not promise

No lease can call back work that was begun while it was valid: a process may be
suspended between the check and the deed. Where that matters, give the token to
the resource and let it refuse lower ones.

# What it needs

Exclusive mode rests on these, and on nothing else:

  - the topic acknowledges by all in-sync replicas (the library asks for it) and has
    unclean leader election off;
  - it is not deleted, recreated or given more partitions while members live. Each is
    noticed within ten seconds, and fatal; but a member that starts before the others
    have noticed may look for a role in another log, and lead beside its holder;
  - only trusted principals may write to it;
  - clocks run at the same rate within bounds: those by which silence is measured
    within MaxClockDrift (CLOCK_MONOTONIC_RAW on Linux, which nobody slews), holders'
    within a tenth of these. They need not agree, and may be set, but not back within
    the same HeartbeatTimeout in which the machine is suspended;
  - running virtual machines are not paused by their hypervisor, snapshotted or
    cloned. Their clocks do not see it, so that a leader that was stopped for longer
    than its lease goes on as one. Only tokens guard against that.

Group membership, rebalance callbacks, commits and the broker's clock play no part
in safety.

# How it works

	 process a: session a1      process b: session b7      process c: unknown yet
	┌──────────────────────┐   ┌──────────────────────┐   ┌──────────────────────┐
	│ IsLeaderOf(0):       │   │                      │   │                      │
	│ a1 holds 0, and      │   │                      │   │                      │
	│ 0 ≤ now − V < 0.9 T  │   │                      │   │                      │
	│      ▲               │   │                      │   │                      │
	│   fold, V            │   │   fold, V            │   │   (reads on)         │  the same fold
	└───┬──────▲───────────┘   └──────▲───────────────┘   └──────▲───────────────┘  at each that has it
	    │ beat │ read back            │ read                     │ read
	    ▼      │                      │                          │
	  ────────────────────────────────────────────────────────────────────────────
	   claim a1 {0 2}   beat a1   claim b7 {1}   beat b7   release a1 {2}   snapshot …
	  ────────────────────────────────────────────────────────────────────────────
	   ▲ offset 17 = token of 0 and 2  ▲ offset 19 = token of 1

A partition of the leader topic is a totally ordered log, so it can arbitrate by
itself. Role j lives on partition j mod M, and one log carries the leases of any
number of roles. A process has a session on each log: one incarnation, with a random
id. The fold of the log says which session holds which role, and with which token;
it is the same at every process that has it. Who holds something writes beats, one for
all that it holds on a partition. V is the time, taken before it was sent, of the
newest own beat or claim that came back from the log. IsLeader is a check of the fold
and of the clock, and nothing else: it turns false by itself.

Everybody else follows the log, and may claim a role after a release, or after a
silence of its holder so long that the lease must be over by any clock. How long the
lease is, HeartbeatTimeout, is in the holder's records. A claim is valid if its
sender had read the holder's newest evidence before it; its offset is the fencing
token. A process that has just started learns the fold from a snapshot in the log,
which others write when they hear it; where there is none it waits until no lease that
it cannot know of can last. The consumer group, if there is one, only says who may
claim.

With Open nomination the members share the roles out among themselves: each says
Hello every five seconds, ranks the others on each vacant role in the same way as
they do, and claims the later the more are before it. Leaders hand over, in batches,
what is more than their share, to members that answer when they are asked. Priority,
Preference, DisableRebalance, Healthy, Transfer and StepDown are ways to have a say in that;
Ask asks another process for the latter two, whose Config.Requests decides.
All of it is preference, and plays no part in safety.

# Who leads

In exclusive mode every process can tell who holds a role (Holder), follow the
changes (Watch) and name the members (Members); Config.Observer is for those that
do nothing else but Ask. What they say is about the past, with its age: it is for routing
and for people. It is no check of leadership.

# Reading on

Config has every setting with its default. Package nelitest has an in-memory
broker to test your own leadership code with, in simulated time. The repository's
docs have a guide, operations with a runbook, tuning, how to come from goNELI,
client-go, etcd or Consul, and the protocol.
*/
package neli
