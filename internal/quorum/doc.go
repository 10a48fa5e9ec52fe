/*
Package quorum is one process's lease on a majority of N small logs: a process leads a role
if it holds the role on more than half of them. While the logs change there are two lists of logs,
and a term needs more than half of each. The package is pure, like package lease, which it
runs once for each log.

	         records of log 0 … N−1, in each log's order            own records, by log
	                        │                                             ▲
	                        ▼                                             │
	┌─ Lease ────────────────────────────────────────────────────────────────────────┐
	│ lease.Lease of log 0 │ … of log 1 │ … of log 2      who holds what, V, per log │
	│ bal, seen            one ballot for all roles and all logs                      │
	│ units                by role: the term's token, the logs that sustain it        │
	└────────────────────────────────────────────────────────────────────────────────┘

A small log may lose its memory: it comes back empty, with another id, and every process
begins to read it again. Two majorities share a log, and on that log a role has at most one
leader at each instant. So it has at most one leader in all. As with a single log, this rests
on clock rates alone.

Tokens are another matter. A single log has its offsets; here tokens are ballots, which the
fold ignores. A process has one ballot, bal, and remembers the largest ballot of any other
process, seen. The token of a term is the ballot at its beginning. A log sustains a
term only if evidence of this session with at least that ballot was read back from it. One
rule makes tokens grow: reading back an own valid Claim lifts bal above every ballot seen until
then. A process that knows no ballots, because a log lost them, starts from the wall clock. So
after a loss of memory, and only then, tokens depend on wall clocks that are within half a
lease of each other.

# The order

Before anything is read, made or decided, check ends the terms that are no longer led. It lifts
bal above their tokens, and gives up nothing else. Then the record is read, and bal is lifted
if an own valid Claim has come back. Then check ends terms again, and settle begins new ones.

# What it does not decide

Package elector decides who should lead what. The policy here (policy.go) adds what a majority
needs. A vacant role is claimed on all logs at once. If several processes win it on some logs each,
all but one give it back. A leader claims its roles on the logs that it lacks. No policy can make
two leaders, or make a token go back.
*/
package quorum
