/*
Package job runs a command while this process leads. It is the elector's side; package guard is the
guards' side.

	contend ──▶ lead ──▶ the command under a guard
	   ▲                   │ ends            → hand over, exit with its code (or contend again)
	   │                   │ told to finish  → TERM, KILL before the drain is over, release, contend again
	   └───────────────────┴ lease lost      → KILL, contend again
*/
package job
