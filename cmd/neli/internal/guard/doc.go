/*
Package guard keeps a command from outliving the lease under which it runs.

	elector ──(deadlines, signals)──▶ guard ──▶ the command, in a process group of its own
	        ◀──(started, ended)──────

The guard is a process of its own. Over a pipe, the elector tells it the time until which the lease
is certain to last, by CLOCK_BOOTTIME, which also counts suspensions; it sends later times as the
lease is renewed. The guard kills the command's process group, with SIGKILL, when the newest of these
times has passed, or when the pipe ends. So the command is dead in time even if the elector was
killed, stopped or starved. When the guard dies, the kernel kills the command, and the elector kills
the rest of the group. When the guard is stopped, the elector resumes it.

When the guard reports that the command has ended, nothing is left of its group: background
processes of the command are killed first.

Where the command can have a cgroup (version 2) of its own, a second guard kills that cgroup
when the lease is over or the elector is gone. The guarantees with and without a cgroup:

	                       cgroup           no cgroup
	elector killed         all are dead     the group is dead
	guard killed           all are dead     the group is dead
	both killed at once    all are dead     the command is dead, not what it has started
	both stopped           all are dead     nothing, until one of them resumes

Without a cgroup there is no guarantee for a process that leaves the group (setsid, setpgid) or
changes its user (setuid, sudo); the guard reports processes of the group that it cannot kill. With a
cgroup there is none if the second guard is killed along with the others, or if the command moves to
another cgroup, which root may do. The next neli run in the same place kills what is left in the old
cgroup. In all these cases only the fencing token, NELI_TOKEN, protects the resource.
*/
package guard
