/*
Package lease is the protocol of exclusive leadership, for one process on one totally
ordered log. It is pure: records and times go in, and records to append come out. The log,
the clocks, randomness, and the choice of roles are the caller's.

	          records, in log order                       own records to append
	                  │                                            ▲
	                  ▼                                            │
	┌─ Lease ─────────────────────────────────────────────────────────────────┐
	│  join:  fold unknown yet; waits for a Snapshot, a fresh Claim, or W     │
	│  fold:  who holds which role, with which token; newest evidence of each │  the same at all
	│  own:   this process's session, V, records in flight, forgotten roles   │  only here
	└──────────────────────────────────────────────────────────────────────────┘

One log carries any number of leases, one for each role. A process has one session on
the log, and one Beat renews everything that its session holds. The fold of the log is
a replicated state machine: it is the same at every process that knows it. Leadership is a
function of the fold and of the process's own clock (Lease.Leads).

One principle carries the proof: what extends a lease is exactly what a claimant must
have read. Only a Beat or Claim of a session that holds something is evidence. Evidence
moves the session's last in the fold. A Claim of a held role is valid only if its sender
had read up to last, and a process sends it only after a silence that outlasts the lease
by any clock.

The package decides what may be claimed and who leads, and does not make records that the
rules forbid. Package elector decides who should claim, when a beat is due, and when to
give a role up. None of its decisions can make two leaders.

The rules are exact. The protocol was seen to break without any one of them, and a test must
catch each mutant in rules_test.go. docs/design.md has all rules in one place.
*/
package lease
