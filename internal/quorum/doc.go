/*
Package quorum is one process's lease on a majority of N small logs: what it makes of
them together, so that a role is led by whoever holds it on more than half of them. It
is pure, as package lease is, which it runs once for each log.

	         records of log 0 … N−1, in each log's order            own records, by log
	                        │                                             ▲
	                        ▼                                             │
	┌─ Lease ────────────────────────────────────────────────────────────────────────┐
	│ lease.Lease of log 0 │ … of log 1 │ … of log 2      who holds what, V, per log │
	│ bal, seen            one ballot for all roles and all logs                      │
	│ units                by role: the term's token, the logs that sustain it        │
	└────────────────────────────────────────────────────────────────────────────────┘

A small log may lose its memory: it comes back empty, with another id, and everything
about it begins anew. Two majorities share a log, and in that log a role has one leader
at each instant; so it has one leader altogether, and this rests on clock rates alone,
as with a single log.

What a single log gives for nothing is tokens: its offsets. Here they are ballots. The
fold knows nothing of them. A process has one ballot, bal, and remembers the largest that
it saw of others, seen. A term's token is the ballot at its beginning, and a log sustains
a term only if evidence of this session with at least that ballot was read back from it.
The one rule that makes tokens go up: an own valid Claim that is read back lifts bal
beyond every ballot seen until then. Who has lost everything that it knew, because a log
did, starts from the wall clock: so after a loss of memory, and then only, tokens rest on
wall clocks that are within half a lease of each other.

# The order

Before anything is read, made or decided, terms that are led no more are ended (check):
bal is lifted above an ended token, and nothing else is given up. Then the record is read;
then bal is lifted for a Claim that has come back; then terms are ended again; and at the
end new ones begin (settle).

# What it does not decide

Who should lead what: that is package elector's. The policy here (policy.go) is what a
majority needs beside it: all logs that are vacant are claimed at once, of several
processes with a part of the logs each all but one give theirs back, and a leader claims
what logs it lacks. Nothing of it can make two leaders, or a token go back.
*/
package quorum
