------------------------------- MODULE Rules -------------------------------
(***************************************************************************)
(* The rules of the protocol for one process on one log, as pure           *)
(* operators: docs/design.md, "The fold", "A process on one log",          *)
(* "Different T", and the origin rule.  Lease.tla lets processes follow    *)
(* them on one log, Majority.tla on N small logs.                          *)
(*                                                                         *)
(* Time.  Nothing here has an absolute time: every clock is a countdown,   *)
(* in units of the clock that measures it, so the states are finite.  One  *)
(* tick of true time moves the clock by which p holds by RateH[p] units    *)
(* and the clock by which p measures silence by RateC[p] units, all within *)
(* RateMin..RateMax.  T is in ticks.  Countdowns stand for these times of  *)
(* design.md:                                                              *)
(*                                                                         *)
(*   life      of a process: T(1-sigma) - (now - V), what is left of all   *)
(*             its leases on the log; it leads while this is above 0       *)
(*   life      of a record: what life would be if the record's sender read *)
(*             it back now; the stamp of a record older than T proves      *)
(*             nothing, so 0 is its end                                    *)
(*   wait[X]   W(T[X]) - (now - heard[X])                                  *)
(*   waitNewer W(Tmax) - (now - heard-Omega)                               *)
(*   over      over - now                                                  *)
(*   waited    now - begin, counted up, no further than anyone waits       *)
(*                                                                         *)
(* Switches.  Off is a set of names of rules that are switched off.  A     *)
(* rule is needed if a run with its name in Off violates an invariant.     *)
(* runs.txt has such a run for each.                                       *)
(*                                                                         *)
(* Left out, since safety does not depend on it:                           *)
(*   - who claims when.  A process that may do something does it at any    *)
(*     time, or never, and does not wait until an own Claim is resolved    *)
(*   - seq, names and preferences; Ping and Pong, which have no part in    *)
(*     the rules                                                           *)
(* Left out, so the specification says nothing about it:                   *)
(*   - a wall clock that is set: a holder counts the greatest of the ages  *)
(*     that its clocks show, and no countdown can follow that              *)
(*   - doubt and votes ("When folds differ"): here nobody misreads         *)
(*   - Snapshots in parts, the sizes of records, roles at or above R       *)
(*   - a process that changes its T: here it is another process            *)
(*   - several partitions, which are logs of their own; so these parts of  *)
(*     the origin rule: other partitions, and the topic's id               *)
(*   - offsets that no reader sees, and records dropped for lack of room,  *)
(*     both of which only make a process unknown for longer                *)
(*   - on small logs several roles, with one ballot of a process for all   *)
(*     of them; Releases in the name of the sender's former session, or,   *)
(*     by a sentinel, of a dead process's; a list of logs that changes,    *)
(*     so that a term needs a majority of the old list and of the new one  *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Procs,             \* the processes
  Roles,             \* the roles of this log
  T,                 \* [Procs -> ticks]: the lease of each process
  Tmax,              \* no lease is longer
  RateMin, RateMax,  \* how many units any clock moves in a tick, at least and at most
  RateH, RateC,      \* [Procs -> units]: what the clocks of each process do, to hold and to claim by
  Whole,             \* TRUE: a log read from offset 0 has the bound own T (not on small logs)
  Off                \* the rules that are switched off

\* The rule is in force.
On(rule) == rule \notin Off

\* No offset; it is below all offsets.
None == -1

\* No session: the holder of a free role, and the sender of a record of a newer version.
Nobody == <<>>

\* The larger, the smaller of two numbers; the largest of a set.
Max(a, b)  == IF a > b THEN a ELSE b
Min(a, b)  == IF a < b THEN a ELSE b
Largest(S) == CHOOSE x \in S : \A y \in S : x >= y

(***************************************************************************)
(* Waits.  A lease of t ticks is led for Hold(t) units of the holder's     *)
(* clock, so for t ticks at most, however slow that clock is.  A claimant  *)
(* waits for Wait(t) units of its clock, so for t ticks at least, however  *)
(* fast that clock is.                                                     *)
(***************************************************************************)
\* T(1-sigma): how much of its own clock a holder leads for.
Hold(t) == t * (IF On("hold-rate") THEN RateMin ELSE RateMax)

\* W(t): how much of its own clock a claimant waits for.  Switched off: without rho; one tick of
\* the fastest clock shorter.
Wait(t) == IF ~On("wait-rate") THEN t * RateMin
           ELSE IF ~On("wait-tick") THEN Max(0, t - 1) * RateMax
           ELSE t * RateMax

\* What p waits for after evidence of session x: the holder's T counts, not the claimant's.
WaitFor(p, x) == Wait(IF On("wait-holder-T") THEN T[x[1]] ELSE T[p])

\* The same when the clock is read after the record is in hand.  Switched off: the clock was read
\* a tick before.
WaitFrom(p, x) == IF On("clock-after-poll") THEN WaitFor(p, x) ELSE Max(0, WaitFor(p, x) - RateC[p])

(***************************************************************************)
(* Records.  A session is <<process, number>>.                             *)
(*   by       the session in whose name the record is                      *)
(*   read     the highest offset that the sender had consumed when it made *)
(*            the record                                                   *)
(*   longest  the largest T of any holder by the sender's fold, None if    *)
(*            the sender does not know the fold                            *)
(*   roles, fresh   of a Claim                                             *)
(*   ended    of a Release: the pairs <<role, token>> that it ends         *)
(*   state    of a Snapshot: <<the sender's fold as of read>>              *)
(*   ballot   on small logs                                                *)
(*   id       on small logs the incarnation of the log that the sender     *)
(*            reads, else the leader epoch in which the record is appended *)
(***************************************************************************)
\* A record without those fields that only some kinds have.
Record(kind, by, read, longest) ==
  [kind |-> kind, by |-> by, read |-> read, longest |-> longest, roles |-> {}, fresh |-> FALSE,
   ended |-> {}, state |-> <<>>, life |-> 0, ballot |-> 0, id |-> 0]

(***************************************************************************)
(* The fold: the holder and token of each role, last of each holder, and   *)
(* newer, the offset of the last record of a newer version (Omega).        *)
(***************************************************************************)
\* The fold in which nobody holds anything.
EmptyFold == [holder |-> [j \in Roles |-> Nobody], token |-> [j \in Roles |-> None],
              last |-> [x \in {} |-> None], newer |-> None]

\* The sessions that hold something; what a session holds.
Holders(f) == {f.holder[j] : j \in Roles} \ {Nobody}
HeldBy(f, x) == {j \in Roles : f.holder[j] = x}

\* A session without roles is forgotten.
Forget(f) == [f EXCEPT !.last = [x \in Holders(f) |-> f.last[x]]]

\* An ordinary Claim m wins role j: it had read the last newer record, and j is free or m had read
\* the newest evidence of j's holder.  Switched off: it need have read only the Claim by which j is held.
Wins(f, m, j) ==
  /\ On("newer-read") => m.read >= f.newer
  /\ \/ f.holder[j] = Nobody
     \/ m.read >= (IF On("claim-read") THEN f.last[f.holder[j]] ELSE f.token[j])

\* A fresh Claim m wins all its roles or none: it had read the newest evidence of every holder.
WinsAll(f, m) ==
  /\ On("newer-read") => m.read >= f.newer
  /\ On("fresh-read") => \A x \in Holders(f) : m.read >= f.last[x]

\* The Claim m at offset o: what it wins has m's session as its holder and o as its token.  A
\* fresh Claim that wins frees all other roles.  A Claim that wins something is evidence of its
\* session.  Switched off: it is no evidence if the session already holds other roles.
FoldClaim(f, m, o) ==
  LET won  == IF m.fresh /\ On("fresh-all") THEN IF WinsAll(f, m) THEN m.roles ELSE {}
              ELSE {j \in m.roles : Wins(f, m, j)}
      base == IF m.fresh /\ On("fresh-wipe") /\ WinsAll(f, m) THEN EmptyFold ELSE f
      mine == IF m.by \in Holders(f) /\ ~On("other-last") THEN f.last[m.by] ELSE o
  IN IF won = {} THEN f
     ELSE Forget([holder |-> [j \in Roles |-> IF j \in won THEN m.by ELSE base.holder[j]],
                  token  |-> [j \in Roles |-> IF j \in won THEN o ELSE base.token[j]],
                  last   |-> [x \in Holders(f) \cup {m.by} |-> IF x = m.by THEN mine ELSE f.last[x]],
                  newer  |-> None])

\* A Release frees role j if it names j's holder and j's token.
FoldRelease(f, m) ==
  LET ends(j) == /\ f.holder[j] # Nobody
                 /\ On("release-session") => f.holder[j] = m.by
                 /\ \E g \in m.ended : g[1] = j /\ (On("release-token") => g[2] = f.token[j])
  IN Forget([f EXCEPT !.holder = [j \in Roles |-> IF ends(j) THEN Nobody ELSE @[j]],
                      !.token  = [j \in Roles |-> IF ends(j) THEN None ELSE @[j]]])

\* Evidence: a Beat, or a Claim whether it wins or not, of a session that holds something after it.
IsEvidence(g, m) == m.kind \in {"Beat", "Claim"} /\ m.by \in Holders(g)

\* Evidence, and nothing else, moves last.  f is the fold before the record, g the fold after it;
\* FoldClaim has already moved last for a Claim that won something.
MovesLast(f, g, m) ==
  /\ m.by \in Holders(g)
  /\ CASE m.kind = "Beat"     -> On("beat-last")
       [] m.kind = "Claim"    -> IF g = f THEN On("invalid-last") ELSE FALSE
       [] m.kind = "Snapshot" -> ~On("snapshot-no-evidence")
       [] m.kind = "Release"  -> ~On("release-no-evidence")
       [] OTHER               -> FALSE

\* The fold after the record m at offset o.  (TLC 2.18 gets an EXCEPT wrong whose index is a tuple.)
Fold(f, m, o) ==
  LET g == CASE m.kind = "Claim"   -> FoldClaim(f, m, o)
             [] m.kind = "Release" -> FoldRelease(f, m)
             [] m.kind = "Newer"   -> IF On("newer") THEN [f EXCEPT !.newer = o] ELSE f
             [] OTHER              -> f
  IN IF MovesLast(f, g, m)
     THEN [g EXCEPT !.last = [x \in DOMAIN @ |-> IF x = m.by THEN o ELSE @[x]]] ELSE g

\* The largest T of any holder; Tmax while the fold has a newer record.
LongestOf(f) == IF f.newer # None /\ On("longest-newer") THEN Tmax
                ELSE Largest({0} \cup {T[x[1]] : x \in Holders(f)})

(***************************************************************************)
(* A process on one log.                                                   *)
(*   n          the number of its session                                  *)
(*   read       the highest offset that it has consumed                    *)
(*   known      it knows the fold, which is in fold                        *)
(*   forgotten  pairs <<role, token>> that it will not lead any more       *)
(*   back       small logs: the largest ballot of own evidence read back   *)
(*   wait, waitNewer  see above                                            *)
(* While it is unknown:                                                    *)
(*   from       the offset at which it began to read                       *)
(*   busy       the newest record whose sender may hold something: a fresh *)
(*              Claim that is adopted must have been sent after reading it *)
(*   bound      no session that held something before from has a larger T  *)
(*   over       how long the leases of all senders heard so far may last   *)
(*   waited     since it began                                             *)
(*   origin     the log is read from its origin so far                     *)
(***************************************************************************)
\* The session of p; it holds something.
Me(q, p)      == <<p, q.n>>
Holding(q, p) == q.known /\ Me(q, p) \in Holders(q.fold)

\* The session holds something, and its lease is over.
Lapsed(q, p) == Holding(q, p) /\ q.life = 0

\* The session holds role j and has not forgotten it.
Keeps(q, p, j) == /\ q.known /\ q.fold.holder[j] = Me(q, p)
                  /\ On("forgotten") => <<j, q.fold.token[j]>> \notin q.forgotten

\* The one rule: p leads role j.
Leads(q, p, j) == Keeps(q, p, j) /\ q.life > 0

\* begin(s), with a session of number n.  origin: the log began at s then.  Switched off: the own T
\* as the bound; a clock that was read a tick before s was known.
Unread(p, s, n, origin) ==
  [n |-> n, read |-> s - 1, known |-> FALSE, fold |-> EmptyFold, life |-> 0, forgotten |-> {}, back |-> 0,
   wait |-> [x \in {} |-> 0], waitNewer |-> 0, from |-> s, busy |-> IF On("adopt-from") THEN s - 1 ELSE None,
   bound |-> IF (s = 0 /\ Whole) \/ ~On("begin-bound") THEN T[p] ELSE Tmax,
   over |-> 0, waited |-> IF On("begin-clock") THEN 0 ELSE RateC[p], origin |-> origin]

\* The process knows the fold f, and its waits for holders begin now.  heard and heardNewer name the
\* rules that demand these waits.  What only an unknown process needs is cleared.
Knows(q, p, f, heard, heardNewer) ==
  [q EXCEPT !.known = TRUE, !.fold = f, !.from = 0, !.busy = None, !.bound = 0, !.over = 0, !.waited = 0, !.origin = FALSE,
            !.wait = [x \in Holders(f) |-> IF On(heard) THEN WaitFor(p, x) ELSE 0],
            !.waitNewer = IF f.newer # None /\ On(heardNewer) THEN Wait(Tmax) ELSE 0]

\* Switched off: a process that begins at the origin knows at once that nobody holds anything.
Begin(p, s, n, origin) == LET q == Unread(p, s, n, origin) IN
  IF origin /\ ~On("origin-own") THEN Knows(q, p, EmptyFold, "-", "-") ELSE q

\* A known process consumes the record m at offset o.  Own evidence of the present session that
\* has not lapsed moves V to the record's stamp (switched off: to now).  Evidence restarts the
\* wait for its session.
Known(q, p, m, o) ==
  LET g      == Fold(q.fold, m, o)
      ev     == IsEvidence(g, m)
      mine   == m.by = Me(q, p)
      lapsed == mine /\ Lapsed(q, p) /\ On("v-after-lapse")
      moves  == ev /\ mine /\ ~lapsed
      restarts(x) == x \notin DOMAIN q.wait \/ (ev /\ x = m.by /\ On("beat-restarts"))
  IN [q EXCEPT !.read = o, !.fold = g,
        !.life = IF moves THEN Max(@, IF On("stamp-before-send") THEN m.life ELSE Hold(T[p])) ELSE @,
        !.back = IF moves THEN Max(@, m.ballot) ELSE @,
        !.wait = [x \in Holders(g) |-> IF restarts(x) THEN WaitFrom(p, x) ELSE q.wait[x]],
        !.waitNewer = IF m.kind = "Newer" THEN Wait(IF On("newer-T") THEN Tmax ELSE T[p])
                      ELSE IF g.newer = None THEN 0 ELSE @,
        !.forgotten = {x \in @ : g.holder[x[1]] = Me(q, p) /\ g.token[x[1]] = x[2]}]

\* A process that has just become known folds the kept records at the offsets i..hi of log.
RECURSIVE FoldKept(_, _, _, _, _, _)
FoldKept(q, p, log, i, hi, newerToo) ==
  IF i > hi THEN q
  ELSE FoldKept(IF log[i+1].kind = "Newer" /\ ~newerToo THEN q ELSE Known(q, p, log[i+1], i), p, log, i + 1, hi, newerToo)

\* An unknown process adopts the Snapshot m at offset o: it takes the fold over, and folds the
\* records that it kept and that the Snapshot's sender had not read.
Adopt(q, p, log, m, o) ==
  LET f == IF On("snap-newer") THEN m.state[1] ELSE [m.state[1] EXCEPT !.newer = None]
      a == Knows(q, p, f, "snap-heard", "snap-heard-newer")
      z == IF On("snap-kept") THEN FoldKept(a, p, log, Max(m.read + 1, q.from), o - 1, On("snap-kept-newer")) ELSE a
  IN [z EXCEPT !.read = o]

\* An unknown process has read a record of its present session, in a log that it reads from its
\* origin: it knows the fold of all records from 0 to o.
KnowsByOrigin(q, p, log, o) ==
  IF On("origin-fold") THEN LET z == FoldKept(Knows(q, p, EmptyFold, "-", "-"), p, log, q.from, o, On("origin-newer")) IN
       [z EXCEPT !.wait = [x \in DOMAIN @ |-> IF On("origin-heard") THEN WaitFor(p, x) ELSE 0]]
  ELSE [Knows(q, p, EmptyFold, "-", "-") EXCEPT !.read = o]

\* An unknown process consumes the record m at offset o: the table "while the process is unknown"
\* of design.md, line by line.
Unknown(q0, p, log, m, o) ==
  LET q == [q0 EXCEPT !.read = o,
              !.bound = IF m.longest # None /\ (On("longest-from") => m.read >= q0.from - 1) THEN Min(@, m.longest) ELSE @]
      z == CASE /\ m.kind = "Claim" /\ m.fresh
                /\ On("adopt-from") => m.read >= q.from - 1
                /\ On("adopt-busy") => m.read >= q.busy
                  -> Known(Knows(q, p, EmptyFold, "-", "-"), p, m, o)
             [] m.kind = "Snapshot" /\ (On("snap-from") => m.read >= q.from - 1)
                  -> Adopt(q, p, log, m, o)
             [] m.kind \in {"Claim", "Beat"}
                  -> [q EXCEPT !.busy = o, !.over = IF ~On("heard") THEN @ ELSE
                                LET w == Wait(IF On("heard-T") THEN T[m.by[1]] ELSE T[p])
                                IN IF On("heard-max") THEN Max(@, w) ELSE w]
             [] m.kind = "Newer"
                  -> [q EXCEPT !.busy = IF On("newer-busy") THEN o ELSE @,
                               !.over = IF On("newer-heard") THEN Max(@, Wait(IF On("newer-heard-T") THEN Tmax ELSE T[p])) ELSE @]
             [] OTHER -> q
      own == IF ~On("origin-any") THEN TRUE
             ELSE IF ~On("origin-session") THEN m.by # Nobody /\ m.by[1] = p ELSE m.by = Me(q, p)
  IN IF ~z.known /\ z.origin /\ own THEN KnowsByOrigin(z, p, log, o) ELSE z

\* A process consumes the record at offset o of log.
Consume(q, p, log, o) == IF q.known THEN Known(q, p, log[o+1], o) ELSE Unknown(q, p, log, log[o+1], o)

\* A known process may claim role j: it is free, or another session holds it and was silent for
\* long enough; and no newer version may hold it.
MayClaim(q, p, j) ==
  /\ q.known
  /\ LET x == q.fold.holder[j] IN
       IF x = Nobody THEN TRUE ELSE x # Me(q, p) /\ (IF On("silence") THEN q.wait[x] = 0 ELSE TRUE)
  /\ IF q.fold.newer # None /\ On("newer-wait") THEN q.waitNewer = 0 ELSE TRUE

\* An unknown process may send a fresh Claim: W(bound) has passed since begin, and all leases that
\* it heard of are over.
MayClaimFresh(q) == ~q.known /\ (IF On("begin-wait") THEN q.waited >= Wait(q.bound) ELSE TRUE) /\ q.over = 0

\* What a process states as longest.  Switched off: the own T, even by a process that is unknown.
Says(q, p) == IF q.known THEN IF On("longest-all") THEN LongestOf(q.fold) ELSE T[p]
              ELSE IF On("longest-known") THEN None ELSE T[p]

\* The records that p can make now.
BeatOf(q, p)     == [Record("Beat", Me(q, p), q.read, Says(q, p)) EXCEPT !.life = Hold(T[p])]
ClaimOf(q, p, J) == [Record("Claim", Me(q, p), q.read, Says(q, p)) EXCEPT !.roles = J, !.fresh = ~q.known, !.life = Hold(T[p])]
SnapshotOf(q, p) == [Record("Snapshot", Me(q, p), q.read, Says(q, p)) EXCEPT !.state = <<q.fold>>]
HelloOf(q, p)    == Record("Hello", Me(q, p), q.read, Says(q, p))
\* A Release of the roles J of session x.
ReleaseOf(q, p, x, J) == [Record("Release", x, q.read, Says(q, p)) EXCEPT !.ended = {<<j, q.fold.token[j]>> : j \in J}]

(***************************************************************************)
(* A tick of true time.                                                    *)
(***************************************************************************)
\* A countdown goes on by d.
Down(x, d) == Max(0, x - d)

\* How far p's clocks move.  Switched off: a holder does not count a suspension, in which a clock
\* may stand still; silence is measured by a clock that is slewed beyond all bounds.
Holds(p)  == IF On("suspended") THEN RateH[p] ELSE 0
Claims(p) == IF On("not-slewed") THEN RateC[p] ELSE RateMax + 1

\* Nobody waits longer than this, so waited stops there.
WaitsAtMost == Wait(Tmax)

\* A process is older: by h units of the clock by which it holds, and by c of the one by which it claims.
AgeBy(q, h, c) == [q EXCEPT !.life = Down(@, h), !.wait = [x \in DOMAIN @ |-> Down(@[x], c)],
                            !.waitNewer = Down(@, c), !.over = Down(@, c),
                            !.waited = IF q.known THEN 0 ELSE Min(WaitsAtMost, @ + c)]

\* A process is a tick older.
Age(q, p) == AgeBy(q, Holds(p), Claims(p))

\* A record is a tick older.
AgeRecord(m) == IF m.life = 0 THEN m ELSE [m EXCEPT !.life = Down(@, IF m.by = Nobody THEN RateMin ELSE Holds(m.by[1]))]

\* A record whose session is over proves nothing: p has taken the session number n.
Outlive(m, p, n) == IF m.life # 0 /\ m.by # Nobody /\ m.by[1] = p /\ m.by[2] # n THEN [m EXCEPT !.life = 0] ELSE m

\* The number of a fresh session of p: the smallest that no one knows (the ids of the library are
\* random, and never used again).
FreshNumber(p, used) == CHOOSE n \in 0..20 : <<p, n>> \notin used /\ \A k \in 0..(n-1) : <<p, k>> \in used
=============================================================================
