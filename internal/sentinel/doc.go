/*
Package sentinel releases what crashed processes held. A sentinel is a small process beside
the members on one machine; the kernel tells it of their deaths, and it appends Releases
in their names, so that others lead within round trips and do not wait for T.

	 members                     sentinel                                      logs
	┌─────────┐ pidfd, secret  ┌──────────┐ died  ┌───────────────────────┐ Hello, Release
	│ Client  │───────────────▶│ Registry │──────▶│ Watch of a group      │───────────────▶
	└─────────┘  unix socket   └──────────┘       │ lease.Lease of a log  │◀───────────────
	                kernel ───── POLLIN ───▶      └───────────────────────┘   all records

No rule of the lease rests on this: a Release may be sent by anybody, and a dead process
leads nothing. So everything rests on the proof of death, which is a pidfd that the member
has opened of itself and sent. Registry and Watch decide, and are pure; Hub, Server, Client and
the runner of a Watch do the I/O.

# Rules

Proof of death:

 1. A member sends a pidfd of itself, its secret and where it contends. One registration
    covers all its sessions.
 2. Its process id is a hash of the secret, so that nobody who only reads the topic can
    register another's id. Nobody but the sentinel may write to the socket's directory.
 3. Exactly one file comes with it: a pidfd, of a process and not a thread, and of the
    process that has connected where the kernel can tell.
 4. Dead is who makes that pidfd readable (POLLIN). Nothing else proves it: no end of a
    connection, no error, no time-out, no word of a supervisor.
 5. When a connection ends without a goodbye the pidfd is kept. The member connects again. Its
    goodbye is the last thing that Close does.

Release:

 6. The sentinel reads all records and appends a few. It never beats or claims.
 7. A Hello takes leave in the dead process's name, once in every log, before its Release:
    others would leave roles to it.
 8. It releases whatever the fold shows for any session of a dead process. Read and Longest
    are the sentinel's own; the dead process has never used the number.
 9. A token that is newly shown is released at once, the same one again every T/4. The dead
    are remembered for max(2T, 30 min), the newest 10,000 of them: their Claims may sit in
    sockets and queues.
 10. No term is released before it is T old: a task that kills whoever runs it would kill
    one member after the other within round trips.
 11. At the beginning the sentinel asks for a Snapshot, in a Hello that takes leave, so that it
    is never a member. It answers others who ask. If nobody has claimed T/20 after a
    Release, it leaves a Snapshot behind.
 12. A Hello each minute keeps the producer warm.
 13. While the fold is unknown it does nothing. Several sentinels do no harm. It keeps
    nothing on disk: restarted, it knows what members tell it again.

A command that neli run supervises outlives its elector. Its guard registers before it
starts; then the member is released when its pidfd has fired and the guard has said that
nothing is left.

# What it does not promise

A machine, kernel or network that fails, and a process that hangs or is suspended, cost T as
without a sentinel. Requests of a dead process that are under way may arrive after its
successor has begun: fencing tokens matter more, not less.
*/
package sentinel
