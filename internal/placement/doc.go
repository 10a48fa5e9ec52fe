// Package placement decides who should lead which role where any process may
// (Open nomination): who claims what is vacant, and what a leader hands over to whom
// so that everybody has a share.
//
//	who is there (id, priority, preference, steady, wants)
//	        │
//	       New                                  who leads what, by role
//	        │                                      │            │
//	        ▼                  vacant roles ──►  Assign       Moves  ◄── one candidate
//	      Plan ─────────────────────────────────►  │            │
//	                                               ▼            ▼
//	                              who claims each of them    what it hands over
//	                              first, and Rank: who next   now, and to whom
//
// All of it is a function of its arguments: no clock, no randomness, no state. Two
// processes that know the same candidates and holders arrive at the same answer, each
// for itself and without a message, whatever order they learnt it in; each carries out
// its own part. Where they know different things, two may claim the same role, or a
// role moves once too often. The log decides who leads; nothing here can make two
// leaders, and nothing here is asked whether somebody leads.
//
// # How
//
// Roles fall into classes: the roles that the same candidates deserve, those who
// prefer them most (or have the highest priority) among those who want them. Each
// class is shared out by itself. Without a Preference, and with the same number of
// roles announced by all, there is one class.
//
// Within a class, rendezvous hashing (Thaler and Ravishankar, 1998) gives each bucket
// of roles an order of the candidates of its own, so that what a dead member led is
// spread over all others, and little else would move. No candidate is given more than
// the share, in roles and exactly: what has no room with the first goes to the next
// that has (consistent hashing with bounded loads: Mirrokni, Thorup and Zadimoghaddam,
// 2016). Ten vacant roles and three candidates make 4, 3 and 3.
//
// A role's bucket is its number modulo a power of two, [Plan.Buckets]: 16,384, or
// fewer beside more than 1,024 candidates, so that candidates × buckets stays at
// 16.8 million up to 16,384 candidates. Fewer roles than buckets: each has its own.
//
// # What it never does
//
// It measures no silence, keeps no list of members, and remembers nothing: whether a
// candidate is there, is steady, or has to be left alone for a while is said to it.
// It evens out numbers of roles, not the work that they make.
package placement
