/*
Package lease is the protocol of exclusive leadership: what one process makes of one
totally ordered log. It is pure: records and times go in, records to append come out;
the log, the clocks, randomness and every wish are the caller's.

	          records, in log order                       own records to append
	                  │                                            ▲
	                  ▼                                            │
	┌─ Lease ─────────────────────────────────────────────────────────────────┐
	│  join:  knows nothing yet; waits for a Snapshot, a fresh Claim, or W    │
	│  fold:  who holds which role, with which token; newest evidence of each │  the same at all
	│  own:   this process's session, V, records on their way, what it forgot │  only here
	└──────────────────────────────────────────────────────────────────────────┘

One log carries any number of leases, one for each role. A process has one session on
the log, and one Beat renews everything that its session holds. The fold of the log is
a replicated state machine: it is the same at every process that knows it, and
leadership is a function of the fold and of the own clock (Lease.Leads).

One principle carries the proof: what extends a lease is exactly what a claimant must
have read. Only a Beat or Claim of a session that holds something is evidence; evidence
moves the fold's last for that session; a Claim of a held role is valid only if its
sender had read up to last, and it was sent only after a silence that outlasts the
lease by any clock.

The package decides what may be claimed and who leads, and refuses to make a record
that the rules forbid. It does not decide who should claim, when a beat is due, or
when to let go: that is package elector's, and nothing of it can make two leaders.

The rules are exact. Each was seen to break when it was weakened, and has a mutant that
a test must catch (rules_test.go). docs/design.md tells them in one piece.
*/
package lease
