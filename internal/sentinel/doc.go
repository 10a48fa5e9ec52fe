/*
Package sentinel releases the roles of crashed processes. A sentinel is a small process on the
members' machine. The kernel notifies it when a member dies, and it appends Releases in the dead
member's name, so that another member leads within round trips instead of after T.

	 members                     sentinel                                      logs
	┌─────────┐ pidfd, secret  ┌──────────┐ died  ┌───────────────────────┐ Hello, Release
	│ Client  │───────────────▶│ Registry │──────▶│ Watch of a group      │───────────────▶
	└─────────┘  unix socket   └──────────┘       │ lease.Lease of a log  │◀───────────────
	                kernel ───── POLLIN ───▶      └───────────────────────┘   all records

No rule of the lease depends on the sentinel: anybody may send a Release, and a dead process leads
nothing. Safety therefore depends only on the proof of death. The proof is a pidfd that the member
opens of itself and sends. Registry and Watch decide and do no I/O; Hub, Server, Client and the
runner of a Watch do the I/O.

# Rules

Proof of death:

 1. A member sends a pidfd of itself, its secret, and its topic and group. One registration
    covers all its sessions.
 2. Its process id is a hash of the secret. So a reader of the topic, who sees the id, cannot
    register it. Only the sentinel's user and root may write to the socket's directory.
 3. Exactly one file comes with a registration. It must be a pidfd, of a process and not of a
    thread. Where the kernel can tell, it must be a pidfd of the connected process.
 4. A member is dead when its pidfd becomes readable (POLLIN). Nothing else proves a death: not
    the end of a connection, an error, a time-out, or the word of a supervisor.
 5. When a connection ends without a goodbye, the sentinel keeps the pidfd, and the member
    connects again. The goodbye is the last thing that Close does.

Release:

 6. The sentinel reads all records and appends few. It never beats or claims.
 7. Before it releases a dead process's roles, it says goodbye to the others in the dead
    process's name: a Hello in every log. Without that, others would leave roles to it.
 8. It releases every role that the fold shows for any session of a dead process. Read and
    Longest in the Release are the sentinel's own, and its number is new to the dead process.
 9. It releases a newly shown token at once, and the same token again every T/4. It remembers
    the newest 10,000 dead for max(2T, 30 min), because their Claims may still be under way in
    sockets and queues.
 10. It releases no term before the term is T old. Otherwise a task that kills its process
    would kill one member after the other within round trips.
 11. When it starts to read a log, it asks for a Snapshot with a Hello that says it is leaving,
    so that nobody counts it as a member. It answers members that ask. If nobody has claimed
    T/20 after a Release, it writes a Snapshot for the next member to start.
 12. A Hello each minute keeps the producer warm: after a long pause its first record would take
    up to 0.6 s.
 13. It releases nothing while it does not know the fold. Several sentinels do no harm. It keeps
    nothing on disk: after a restart, members register again within 15 s.

Commands and late packets:

A command started by neli run outlives the process that elects. The guard of the command registers
before the command starts. The sentinel then releases the member's roles only when its pidfd has
fired and the guard has said that nothing of the command is left. When the member registers again, it
says whether a command runs, and gives the guard a connection of the new registration. Until then the
sentinel does not say that it watches the member: a crash would cost T.

 14. A sentinel that was suspended reads packets long after they were sent, and those of several
    connections in any order. So registrations have numbers, and what is said about any but the
    newest one has no effect. A registration counts once the member has confirmed the sentinel's
    answer. A member says goodbye on each connection that it gives up. Everything that a dead member
    sent over its newest connection is read before its death counts. The sentinel forgets a member
    before it ends the connection itself.

# What it does not promise

If a machine, its kernel or its network fails, or a process hangs or is suspended, its roles stay
taken for T, as without a sentinel. Requests that a dead process sent may arrive after its
successor has begun, so fencing tokens matter more, not less.
*/
package sentinel
