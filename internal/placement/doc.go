// Package placement decides who should lead which role if any process may lead (Open
// nomination): who claims vacant roles, and which roles a leader hands over to whom so that
// everybody has a share.
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
// Everything here is a function of its arguments: no clock, no randomness, no state. Processes
// that know the same candidates and holders get the same answer, each by itself and without a
// message, in whatever order they learnt it. Each carries out its own part. If their knowledge
// differs, two may claim the same role, or a role may move once too often. But the log decides
// who leads: nothing here can make two leaders, and no check of leadership uses this package.
//
// # How
//
// Roles fall into classes. The same candidates deserve all roles of a class: of those that want
// them, the ones that prefer them most or have the highest priority. Each class is shared out by
// itself. Without a Preference, and if all announce the same number of roles, there is one class.
//
// Within a class, rendezvous hashing (Thaler and Ravishankar, 1998) gives each bucket of roles
// its own order of the candidates. So what a dead member led is spread over all others, and
// little else moves. No candidate gets more than its share, which is exact and counted in roles:
// a role whose first candidate has no room goes to the next one that has (consistent hashing with
// bounded loads: Mirrokni, Thorup and Zadimoghaddam, 2016). Ten vacant roles and three candidates
// make 4, 3 and 3.
//
// A role's bucket is its number modulo a power of two, [Plan.Buckets]. That is 16,384, or less
// with more than 1,024 candidates, so that candidates × buckets stays within 16.8 million for up
// to 16,384 candidates. If there are fewer roles than buckets, each role has its own bucket.
//
// # Caps
//
// A candidate may have a cap ([Candidate.Max]). It comes before preference: what a preferred candidate
// has no room for goes to the next ones. Roles beyond all caps go to the candidates that have least.
//
// # Weights
//
// Roles may have weights ([Weights]). Then a candidate's share is the sum of the weights of its roles. Heavy roles are
// dealt out first, so that light ones even out what differs.
//
// # What it never does
//
// It measures no silence, keeps no list of members, and remembers nothing. The caller says
// whether a candidate is present and steady, and leaves out those in a cooldown. It does not measure
// the work that roles cause.
package placement
