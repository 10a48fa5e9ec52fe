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

# The order of a step

Each input ends with a step of the shard that it concerns, and the order of that
step matters:

 1. lapse: a session that leads nothing any more ends, before anything is made in its
    name (lease.Lapse wants it so);
 2. giveUp, advance: what is not wanted any more is handed over, before anything new is
    claimed;
 3. repeat, beat: what is held is kept alive, and what was given back is said again;
 4. noticeSilent, claim: holders whose leases are over by any clock are noticed, and what is
    due is claimed, all of it in one record;
 5. greet, answer: Hellos to a log that is not known, Snapshots for those who ask.

When a term ends, the table hears of it before a Release is made, and before V moves for
another session: so the check without a lock never holds for what others may claim.

# Restraint

After an outage everybody has lapsed, and everybody would claim everything; what is sent
again "to be sure" then keeps the log as busy as what it replaces, and nobody ever leads
again. So a Claim carries all roles that are due, at most one Beat, one Hello and one
Claim are on their way at a time, a Claim that failed is followed by the next one after
T/8 · 2^k, and who has read nothing of its own for a while sends only a Hello, until one
comes back quickly (link, vacancy).

# Files

settings.go says what a Node is told and which Log it needs. node.go has its inputs and output,
read.go what a record that was read does, and what the log is told of trouble. timing.go ends a
Node. loop.go has the only mutex, the goroutines and the I/O, calls.go and watching.go what others
ask of an Elector, and face.go what package neli needs of the packages below.

A shard (shard.go) is the roles that have the same logs, and what it needs of them. opening.go makes
shards and channels, shard_claims.go decides what is claimed and when, release.go what is given up. A
channel
(channel.go, announcements.go) is one log, its own records there, and the Pings that members answer.
standings.go reports to others; it decides nothing.

# Packages

These need no Node. The Node tells each what it has to know, and carries out what it says. Each
changes its own fields only:

	leases    who holds a shard's roles, by one log or by a majority of small ones, and what is our own
	roster    who is there, and who may be given roles
	vacancy   which roles are vacant, and when this process claims them
	handover  how the orderly end of a term goes on
	balance   what is handed over though it could be kept, and what became of it
	announce  when to say Hello, when to write a Snapshot
	nominate  what a nominator said, and when to make room
	request   what processes ask of each other
	link      own records in flight on one log, and round trips
	observe   who is known to hold what, for Holder, Watch and Standings
	stats     counters, and for how long roles had no leader
*/
package elector
