/*
Package neli elects leaders among the processes of a service that already uses Kafka, with no
further infrastructure. It implements both modes of the NELI protocol of Koutanov's paper
"Non-Exclusive Leader Induction in Highly Available Systems".

	n, err := neli.New(neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": "localhost:9092"},
		LeaderGroupID: "invoicing",
	})
	…
	defer n.Close() // hands over
	err = n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error { … }) // while this process leads

# What it promises

Exclusive mode (the default): at every instant at most one process leads a role, through pauses,
suspensions and crashes of processes, network partitions, delayed, lost or duplicated records, and
rebalances of any kind. Every term of a role has a fencing token that is larger than the tokens of
all its former terms. After a leader has failed, another process leads after about
HeartbeatTimeout (Open nomination, the default), or after the group's session timeout if that is
longer (Assigned). After a leader has closed, another process leads after two records: a Release
and a Claim.

Non-exclusive mode: a role has a leader as long as the old leader lives, even if the old leader is
cut off; during a change two leaders overlap. After a crash the role has no leader for at most the
session timeout plus a rebalance plus one beat. Two disjoint groups over the same roles cover that
gap.

# What it does not promise

No lease can undo work that began while the lease was valid: a process may be suspended between
its check and its action. Where that matters, give the token to the resource, and let the resource
refuse lower tokens.

# What it needs

Exclusive mode depends on these conditions, and on nothing else:

  - The topic acknowledges a record when all in-sync replicas have it (the library asks for that),
    and unclean leader election is off.
  - The topic is not deleted, recreated or given more partitions while members live. Members notice
    a recreated topic and added partitions within about ten seconds, a deleted topic after a
    minute, and fail. But a member that starts before the others have
    noticed may look for a role in another log, and lead beside its holder.
  - Only trusted principals may write to the topic.
  - Clocks run at the same rate within bounds: the clocks that measure silence within MaxClockDrift
    (CLOCK_MONOTONIC_RAW on Linux, which no daemon adjusts), the ordinary clocks of holders within a
    tenth of these. Clocks need not agree, and may be set; but a clock must not be set back within
    the same HeartbeatTimeout in which its machine is suspended.
  - Running virtual machines are not paused by their hypervisor, snapshotted or cloned. Their clocks
    do not show such a stop, so a leader that was stopped for longer than its lease would go on.
    Only tokens guard against that.

Safety does not depend on group membership, rebalance callbacks, commits or the broker's clock.

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

A partition of the leader topic is a totally ordered log, so it can act as an arbiter. Role j lives
on partition j mod M; one log carries the leases of any number of roles. On each log a process has a
session with a random id. The session lasts until its lease lapses or the process loses its place in
the log. Every process folds the log into the same state: which session holds which role, and with
which token. A process that holds a role writes beats; one beat renews all its roles on a partition.
V is the time just before the process sent its newest beat or claim that it has read back from the
log. IsLeader checks the state, compares V with the clock, and does nothing else: it turns false by
itself.

All other processes follow the log. One of them may claim a role after its holder has released it,
or has been silent for so long that the lease must be over by any clock; the holder's records state
how long its lease is (HeartbeatTimeout). A claim is valid if its sender had read the holder's
newest evidence before it sent the claim; the claim's offset is the fencing token. A process that
has just started learns the state from a snapshot, which other processes write to the log when they
hear it. If there is none, it waits until every lease that it cannot know of must be over. A
consumer group, if there is one, only decides who may claim.

With Open nomination the members divide the roles among themselves. Each says Hello every five
seconds, less often in groups of more than 25. All rank the members for a vacant role in the same
way, and a member claims later the more members rank before it. A leader with more roles than its
share hands the surplus over in batches, to members that answer when they are asked. Priority,
Preference, Weight, DisableRebalance, Healthy, Transfer and StepDown influence that. Ask asks another
process for a Transfer, a StepDown or a Rebalance; that process's Config.Requests decides. None of
this affects safety.

# Discovery

In exclusive mode every process can tell who holds a role (Holder), follow the changes (Watch) and
list the members (Members). A process with Config.Observer does only that, and may Ask. Each answer
is about the past, and has its age: it is for routing and for people, and is no check of leadership.

# Further reading

Config lists every setting with its default. Package nelitest has an in-memory broker to test your
own leadership code in simulated time. The repository's docs have a guide, operations, a runbook,
tuning, migration from goNELI, client-go, etcd and Consul, and the protocol.
*/
package neli
