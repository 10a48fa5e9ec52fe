/*
Package elector is one process's part in the election: which records it appends to the
logs, and when. Node decides and is pure; Elector runs it, and does nothing else.

	 application            members' records            nominator         time
	 Set, Drained,          Read (in log order),        Nominate          Tick
	 Transfer               Acked                          │               │
	      │                      │                         │               │
	      ▼                      ▼                         ▼               ▼
	┌─ Node ────────────────────────────────────────────────────────────────────┐
	│ shard 0: lease · own · handovers · claims       channel 0: link · Hellos   │
	│ shard 1: …                                                                 │
	│ roster · plan of who should lead what (placement) · balance · requests     │
	└───────┬───────────────────────────────────────────────┬───────────────────┘
	        ▼                                               ▼
	 Ready{Append, Notes, WakeIn, Verify, …}         term.Table: what is held, V
	        │ carried out without a lock                    │ read without a lock
	        ▼                                               ▼
	     the logs                                        IsLeader

What it decides is preference: who claims first what is vacant, when a beat is due, to
whom something is handed over. What may be claimed at all and who leads is package
lease's, and nothing here can make two leaders: every record is made by a Lease, which
refuses what its rules forbid.

# The order of Tick

 1. Members that were silent for too long are gone; a process that was suspended puts off its Hello.
 2. If this process is willing again, all shards reconsider their vacant roles.
 3. Each shard adds up its vacancies, and from time to time looks for one that nobody has claimed.
 4. rebalance begins handovers.
 5. Each shard steps.
 6. announce says Hello; what was asked of others is pursued.
 7. verify gives up Claims that were lost; finish ends a process that closes.

# The order of a step

Each input ends with a step of the shard that it concerns. Before it, when the wait for others that
start is over, all shards reconsider their vacant roles. A shard is made with what it may know of its process
for good (told.Process); each step gets the time and told.In. What the shard wants is in told.Out, which the
Node carries out before another shard steps. So a shard sees what the one before it has changed. No shard
knows the Node or another shard, and no channel knows its shard. The order of a step matters:

 1. catchUp: the records that were in a log when reading began are read;
 2. lapse: a session that leads nothing any more ends, before anything is made in its
    name (lease.Lapse wants it so), and sync brings the terms in step with the leases;
 3. giveUp, advance: what is not wanted any more is handed over, before anything new is
    claimed;
 4. repeat, beat: Releases that have not come back are repeated, and what is held is kept alive;
 5. noticeSilent, claim: holders whose leases are over by any clock are noticed, and what is
    due is claimed, all of it in one record; sync follows, since small leases may have changed;
 6. greet, lookBack, answer: Hellos that ask for the fold or probe a log, reading from farther back,
    Snapshots for those who ask;
 7. due: when the next step is due.

When a term ends, the table hears of it before a Release is made, and before V moves for
another session: so the check without a lock never holds for what others may claim.

# Restraint

After an outage everybody has lapsed, and everybody would claim everything. Records repeated
"to be sure" would keep the log as busy as those that they replace, and nobody would ever lead
again. So a Claim carries all roles that are due. As a rule at most one Beat, one Hello and one
Claim are on their way to a log. After a Claim that failed, the next one waits for about T/8 · 2^k.
A process that has read none of its own records for a while claims nothing, and says Hello until
one comes back quickly (link, vacancy).

# Files

settings.go has what package neli and its logs need of the packages below. node.go has the
Node's inputs and output, read.go what reading a record does. others.go is what a process says to
others: its Hellos, requests, its part in a nominator's group, its goodbye. planning.go has what this
process wants, its plan, and the handovers that follow from that. loop.go has the Node's lock, the goroutines
and the I/O, and calls.go what others ask of an Elector.

A shard (shard.go) is the roles that have the same logs, and all that is kept for them. claims.go decides what
is claimed and when, release.go what is given up.

# Packages

These need no Node. The Node tells each what it has to know, and carries out what it says. Each
changes its own fields only:

	outside   what an elector is told by its application, and what it needs of the logs
	channel   one log: own records there, Hellos, Snapshots, Releases that are repeated
	told      what a shard knows of its process, and what it wants the Node to do
	leases    who holds a shard's roles, by one log or by a majority of small ones, and which are our own
	roster    who is there, and who may be given roles
	vacancy   which roles are vacant, and when this process claims them
	handover  how the orderly end of a term goes on
	offer     which roles others are to prepare before they get them
	prepare   what this process prepares of what others offer, and the calls of the application's Prepare
	warm      how a handover goes on while its successor prepares the roles
	standby   which member prepares a role in case its holder dies
	balance   which roles are handed over though they could be kept, and what became of them
	announce  when to say Hello, when to write a Snapshot
	nominate  what a nominator said, and when to make room
	request   what processes ask of each other
	link      own records in flight on one log, and round trips
	observe   who is known to hold what, for Holder, Watch and Standings
	pace      when a Node opened its logs, last verified them, and is to tick
	report    which trouble with records is logged
	prefer    calls the application's Preference
	stats     counters, and for how long roles had no leader
	watch     wakes those who wait for changes, and shares looks at all roles
*/
package elector
