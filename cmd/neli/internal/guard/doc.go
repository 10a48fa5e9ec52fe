/*
Package guard keeps a command from outliving the lease under which it runs.

	elector ──(deadlines, signals)──▶ guard ──▶ the command, in a process group of its own
	        ◀──(started, ended)──────

The guard is a process of its own. The elector tells it, over a pipe, until when the
lease is sure to last, by CLOCK_BOOTTIME, which counts suspensions, too; and later and
later times as the lease is renewed. The guard kills the command's group, with SIGKILL, when the
newest of these times has passed, and when the pipe ends: so the command is dead in time
also if the elector was killed, stopped or starved. When the guard dies the kernel kills
the command, and the elector what is left of the group; when it is stopped the elector has
it go on.

Nothing of the group is left when the guard says that it has ended: what the command
has left behind in the background is killed then, too.

Where the command can have a cgroup (version 2) of its own, a second guard kills that cgroup
when the lease is over or the elector has gone. What holds then, and without:

	                       cgroup           no cgroup
	elector killed         all are dead     the group is dead
	guard killed           all are dead     the group is dead
	both killed at once    all are dead     the command is dead, not what it has started
	both stopped           all are dead     nothing, until one of them goes on

Without a cgroup nothing is sure of a process that leaves the group (setsid, setpgid) or
changes its user (setuid, sudo); the guard reports processes of the group that it cannot kill. With a cgroup
nothing is sure if the second guard is killed along with the others, or if the command moves
to another cgroup, as root may: the next neli run there kills what is left in the old one. In all these
cases the fencing token, NELI_TOKEN, is what protects the resource.
*/
package guard
