/*
Package offer says which roles a holder offers to a member before it hands them over, so that a role arrives at
a process that is ready for it. All of it is preference.

Both sides send sets, and repeat them: the holder all roles that it offers, the member how far it is with
all of these. A record that is lost, late or doubled then does no lasting harm, and a role that is called
off is one that the next offer does not name. Numbers decide which offer and which state is the newest,
since records are not in the order in which they were sent.

	holder (offer)                            member (prepare)
	Name ──► offer {n, roles, urgent} ──────► Offered: queued, running
	Standing ◄───── state {n, of, …} ◄─────── ready, failed
	Asked, Release ─────────────────────────► claims it; Held: prepared or not
	Given, when that is read back

A role stays in the offer until its Release was read back: the member may read the next offer first, and
would let go of the role that it is about to get.
*/
package offer
