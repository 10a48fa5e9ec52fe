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

What it cannot do: kill processes that left the group (setsid, setpgid); anything at all
while guard and elector are stopped both, or one is stopped and the other killed at the
same moment. There the fencing token, NELI_TOKEN, is what protects the resource.
*/
package guard
