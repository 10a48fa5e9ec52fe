------------------------------- MODULE Lease -------------------------------
(***************************************************************************)
(* Processes that follow Rules.tla on one log, and an adversary.  Records  *)
(* are delayed without bound, reordered, lost (they stay in flight) and    *)
(* doubled; processes are slow, begin again at any offset, and die; time   *)
(* passes at any moment.  A process that may send something does so at any *)
(* time, or never.  A sentinel Releases what dead processes held.  A       *)
(* member of a newer version may lead at first.                            *)
(*                                                                         *)
(* The log may also lose records, and its leader epoch grows (MaxLosses).  *)
(* docs/correctness.md excludes that, since two processes may then lead.   *)
(* But neither of them may have learned the fold by the log's origin       *)
(* (NoneByOrigin).  If some records are left (KeepMost), NoneByOrigin      *)
(* covers only processes that begin after the loss: any process that knows *)
(* the fold already may suffer from it.                                    *)
(* Without "later-loss" it covers all processes, and is false: a process   *)
(* that has read no further than its own record claims what a leader holds *)
(* by a later record that is lost.                                         *)
(* Of the origin rule these conditions are here: offset 0, epoch 0, the    *)
(* own record of the present session, all records folded, heard = now.     *)
(***************************************************************************)
EXTENDS Rules

CONSTANTS
  Start,             \* "cold":  the log is empty; nobody knows the fold, and everybody has waited long enough
                     \* "held":  process First holds the roles Initial
                     \* "newer": a member of a newer version leads all roles, by the record at offset 0
  First, Initial,
  Late, LateAt,      \* held, newer: the processes Late have begun at LateAt and read nothing; others have read all
  MaxSent,           \* how many records are in the log and in flight
  MaxFlight,         \* how many are in flight
  MaxBegins, MaxDeaths, MaxDoubles, MaxLosses,
  KeepMost,          \* how many records the log keeps when it loses some, at most
  Kinds,             \* the kinds of records that are sent
  Origin             \* the processes whose reader says that it reads from the origin

VARIABLES
  log,               \* the record at offset o is log[o+1]
  hist,              \* the true fold after each record in log
  flight,            \* the records in flight
  ps,                \* the state of each process
  dead,              \* the processes that have died
  newer,             \* the member of a newer version
  saw,               \* per process: the epoch of the last record that it read, None if it read none
  byOrigin,          \* lossy log: the processes that know the fold by the origin
  ended,             \* per role: the largest token whose term is over
  count              \* how many begins and renewals, deaths, doubles and losses there were

vars == <<log, hist, flight, ps, dead, newer, saw, byOrigin, ended, count>>

\* The log's leader epoch, which grows whenever the log loses records.
Epoch == count.losses
Lossy == MaxLosses > 0

\* The true fold after offset o.
Truth(o) == IF o = None THEN EmptyFold ELSE hist[o+1]

\* The member of a newer version leads all roles.
NewerLeads == newer.on /\ newer.life > 0

\* p is alive and leads j.
LeadsNow(p, j) == p \notin dead /\ Leads(ps[p], p, j)

\* The token by which p leads j now, None if it does not lead j.
TokenOf(p, j) == IF LeadsNow(p, j) THEN ps[p].fold.token[j] ELSE None

\* The sessions that a record or a process names; the number of the session that p takes next.
Used == {m.by : m \in flight \cup {log[i] : i \in 1..Len(log)}} \cup UNION {Holders(ps[x].fold) : x \in Procs}
NewN(p) == IF On("fresh-session") /\ On("fresh-id") THEN FreshNumber(p, Used) ELSE ps[p].n
\* The log and the records in flight when p has taken session n.
OutliveLog(p, n)    == [i \in 1..Len(log) |-> Outlive(log[i], p, n)]
OutliveFlight(p, n) == {Outlive(m, p, n) : m \in flight}

-----------------------------------------------------------------------------
\* The start.  Processes that read from the origin have said Hello, First last of all.
NewerRecord == [Record("Newer", Nobody, None, None) EXCEPT !.life = Hold(Tmax)]
BeginAt(p, s) == Begin(p, s, 0, p \in Origin /\ s = 0)
\* Hellos: the log l with the Hellos of the processes S appended.  ReadAll: q after it has read log l
\* from o on.  FoldOf: the true fold of log l.  FirstLog, StartOf: the log and process p at the start.
RECURSIVE Hellos(_, _)
Hellos(l, S) == IF S = {} THEN l ELSE LET p == CHOOSE p \in S : S = {First} \/ p # First IN
  Hellos(Append(l, [HelloOf(BeginAt(p, 0), p) EXCEPT !.read = Len(l) - 1]), S \ {p})
RECURSIVE ReadAll(_, _, _, _)
ReadAll(q, p, l, o) == IF o = Len(l) THEN q ELSE ReadAll(Consume(q, p, l, o), p, l, o + 1)
FirstLog == CASE Start = "cold"  -> <<>>
              [] Start = "newer" -> <<NewerRecord>>
              [] Start = "held"  -> LET l == Hellos(<<>>, Origin \ Late) IN
                   Append(l, ClaimOf(ReadAll(BeginAt(First, 0), First, l, 0), First, Initial))
RECURSIVE FoldOf(_)
FoldOf(l) == IF l = <<>> THEN EmptyFold ELSE Fold(FoldOf(SubSeq(l, 1, Len(l) - 1)), l[Len(l)], Len(l) - 1)
StartOf(p) == CASE Start = "cold"  -> [BeginAt(p, 0) EXCEPT !.waited = WaitsAtMost]
                [] p \in Late      -> BeginAt(p, LateAt)
                [] Start = "newer" -> Known(Knows(BeginAt(p, 0), p, EmptyFold, "-", "-"), p, NewerRecord, 0)
                [] OTHER           -> ReadAll(BeginAt(p, 0), p, FirstLog, 0)

Init ==
  /\ log = [i \in 1..Len(FirstLog) |-> [FirstLog[i] EXCEPT !.life = 0]]
  /\ hist = [i \in 1..Len(FirstLog) |-> FoldOf(SubSeq(FirstLog, 1, i))]
  /\ flight = {} /\ dead = {} /\ byOrigin = {p \in Procs : Lossy /\ StartOf(p).known /\ p \in Origin /\ LateAt = 0}
  /\ ps = [p \in Procs |-> StartOf(p)]
  /\ saw = [p \in Procs |-> IF Lossy /\ (Start = "cold" \/ p \in Late) THEN None ELSE 0]
  /\ newer = IF Start = "newer" THEN [on |-> TRUE, life |-> Hold(Tmax), read |-> 0] ELSE [on |-> FALSE, life |-> 0, read |-> 0]
  /\ ended = [j \in Roles |-> None] /\ count = [begins |-> 0, deaths |-> 0, doubles |-> 0, losses |-> 0]

-----------------------------------------------------------------------------
\* The bounds allow another record.
Room == Len(log) + Cardinality(flight) < MaxSent /\ Cardinality(flight) < MaxFlight
\* Set: the state of p becomes q.  Rest: what most steps leave unchanged.
Set(p, q) == ps' = [ps EXCEPT ![p] = q]
Rest == UNCHANGED <<dead, newer, saw, byOrigin, count>>

\* p hands the record m to its producer.
Send(p, m) == Room /\ m.kind \in Kinds /\ flight' = flight \cup {m} /\ UNCHANGED <<log, hist>> /\ Rest

\* A session that has lapsed does nothing but end.
Able(p) == p \notin dead /\ (IF On("lapse-ends") THEN ~Lapsed(ps[p], p) ELSE TRUE)

\* Only a session that holds something sends Beats.  Switched off "V-on-readback": V moves as soon
\* as the Beat is sent.
Beat(p) == LET q == ps[p] IN
  /\ Able(p) /\ IF On("only-holders-beat") THEN Holding(q, p) /\ ~Lapsed(q, p) ELSE q.known
  /\ Send(p, BeatOf(q, p))
  /\ Set(p, IF On("V-on-readback") THEN q ELSE [q EXCEPT !.life = Hold(T[p])])

\* A process claims any roles that it may claim.
Claim(p) == \E J \in SUBSET Roles \ {{}} :
  /\ Able(p)
  /\ IF ps[p].known THEN \A j \in J : MayClaim(ps[p], p, j) ELSE MayClaimFresh(ps[p])
  /\ Send(p, ClaimOf(ps[p], p, J)) /\ UNCHANGED ps

\* The session forgets roles, then Releases them, as often as it likes until it holds them no more.
Release(p) == \E J \in SUBSET Roles \ {{}} : LET q == ps[p] IN
  /\ Able(p) /\ q.known /\ J \subseteq HeldBy(q.fold, Me(q, p))
  /\ Send(p, ReleaseOf(q, p, Me(q, p), J))
  /\ Set(p, IF On("forget-first") THEN [q EXCEPT !.forgotten = @ \cup {<<j, q.fold.token[j]>> : j \in J}] ELSE q)

\* A Release in the name of an own former session, or of the session of a dead process, which a
\* sentinel sends.
ReleaseFor(p) == LET q == ps[p] IN \E x \in Holders(q.fold) :
  /\ Able(p) /\ q.known
  /\ IF x = Me(q, p) THEN ~On("sentinel-own") ELSE x[1] = p \/ x[1] \in dead \/ ~On("sentinel-dead")
  /\ Send(p, ReleaseOf(q, p, x, HeldBy(q.fold, x))) /\ UNCHANGED ps

\* Any process that knows the fold may write a Snapshot, and any process a Hello.
Snapshot(p) == Able(p) /\ ps[p].known /\ Send(p, SnapshotOf(ps[p], p)) /\ UNCHANGED ps
Hello(p)    == Able(p) /\ Send(p, HelloOf(ps[p], p)) /\ UNCHANGED ps

\* Lapse: the process takes a fresh session; the fold stays known.
Lapse(p) == LET q == ps[p] n == NewN(p) IN
  /\ p \notin dead /\ On("lapse-ends") /\ Lapsed(q, p)
  /\ Set(p, [q EXCEPT !.n = n, !.life = 0, !.forgotten = {}])
  /\ log' = OutliveLog(p, n) /\ flight' = OutliveFlight(p, n)
  /\ UNCHANGED hist /\ Rest

\* A process that holds nothing may take a fresh session at any time: it has given up a Claim that
\* does not come back.  If it comes back after all, it is another session's.
Renew(p) == LET q == ps[p] n == NewN(p) IN
  /\ p \notin dead /\ ~Holding(q, p) /\ count.begins < MaxBegins
  /\ Set(p, [q EXCEPT !.n = n, !.life = 0, !.forgotten = {}])
  /\ count' = [count EXCEPT !.begins = @ + 1]
  /\ log' = OutliveLog(p, n) /\ flight' = OutliveFlight(p, n)
  /\ UNCHANGED <<hist, dead, newer, saw, byOrigin>>

\* The client of p notices a loss: its position is beyond the end, or the last record that it read
\* has another epoch now.
Lost(p) == IF ~Lossy THEN FALSE ELSE IF ps[p].read + 1 > Len(log) THEN TRUE
           ELSE IF saw[p] = None THEN FALSE ELSE log[ps[p].read + 1].id # saw[p]

\* A boot, a restart, a jump: at any offset, since the log may have been deleted up to there.
\* Switched off "fresh-session": the former session goes on, with its V; "fresh-id": without its V.
BeginAnew(p) == \E s \in 0..Len(log) : LET n == NewN(p) q == Begin(p, s, n, p \in Origin /\ (On("origin-start") => s = 0)) IN
  /\ p \notin dead /\ (IF Lost(p) THEN TRUE ELSE count.begins < MaxBegins)
  /\ count' = [count EXCEPT !.begins = IF Lost(p) THEN @ ELSE @ + 1]
  /\ Set(p, IF On("fresh-session") THEN q ELSE [q EXCEPT !.life = ps[p].life])
  /\ saw' = IF Lossy THEN [saw EXCEPT ![p] = None] ELSE saw
  /\ byOrigin' = IF Lossy /\ q.known THEN byOrigin \cup {p} ELSE byOrigin \ {p}
  /\ log' = OutliveLog(p, n) /\ flight' = OutliveFlight(p, n)
  /\ UNCHANGED <<hist, dead, newer>>

\* A process dies.
Die(p) ==
  /\ p \notin dead /\ count.deaths < MaxDeaths
  /\ dead' = dead \cup {p} /\ count' = [count EXCEPT !.deaths = @ + 1]
  /\ UNCHANGED <<log, hist, flight, ps, newer, saw, byOrigin>>

\* A process reads its next record.  A record whose sender had read as far shows that the log went
\* back: the alarm.  A record of an epoch above 0 ends the origin.
Read(p) == LET o == ps[p].read + 1 IN
  /\ p \notin dead /\ o < Len(log) /\ ~Lost(p)
  /\ LET m == log[o+1]
         alarm == m.read >= o
         n  == IF alarm THEN NewN(p) ELSE ps[p].n
         q  == IF m.id > 0 /\ On("origin-epoch") THEN [ps[p] EXCEPT !.origin = FALSE] ELSE ps[p]
         q2 == IF alarm THEN Begin(p, o + 1, n, FALSE) ELSE Consume(q, p, log, o)
         back == q2.known /\ m.by = Me(q, p)       \* it will not be read back again
     IN /\ Set(p, q2)
        /\ byOrigin' = IF alarm THEN byOrigin \ {p}
                       ELSE IF Lossy /\ ~q.known /\ q2.known /\ ~Consume([q EXCEPT !.origin = FALSE], p, log, o).known
                            THEN byOrigin \cup {p} ELSE byOrigin
        /\ log' = IF alarm THEN OutliveLog(p, n) ELSE IF back THEN [log EXCEPT ![o+1].life = 0] ELSE log
        /\ flight' = IF alarm THEN OutliveFlight(p, n) ELSE flight
        /\ saw' = IF ~Lossy THEN saw ELSE [saw EXCEPT ![p] = IF alarm THEN None ELSE m.id]
  /\ UNCHANGED <<hist, dead, newer, count>>

\* A record in flight is appended.  Switched off: a Claim says what was read when it is appended.
Arrive == \E m0 \in flight, twice \in BOOLEAN :
  LET m == IF m0.kind = "Claim" /\ ~On("read-at-decision") THEN [m0 EXCEPT !.read = Len(log) - 1] ELSE m0 IN
  /\ IF twice THEN count.doubles < MaxDoubles /\ Len(log) + Cardinality(flight) < MaxSent ELSE TRUE
  /\ log' = Append(log, [m EXCEPT !.id = Epoch]) /\ hist' = Append(hist, Fold(Truth(Len(log) - 1), m, Len(log)))
  /\ flight' = IF twice THEN flight ELSE flight \ {m0}
  /\ count' = IF twice THEN [count EXCEPT !.doubles = @ + 1] ELSE count
  /\ UNCHANGED <<ps, dead, newer, saw, byOrigin>>

\* The member of a newer version leads all roles by its records, until it reads a valid Claim of
\* this version.
NewerSends == NewerLeads /\ Room /\ flight' = flight \cup {NewerRecord} /\ UNCHANGED <<log, hist, ps>> /\ Rest
NewerReads == LET o == newer.read + 1 m == log[o+1] IN
  /\ newer.on /\ o < Len(log)
  /\ newer' = IF \E j \in Roles : hist[o+1].token[j] = o THEN [on |-> FALSE, life |-> 0, read |-> 0]
              ELSE [newer EXCEPT !.read = o, !.life = IF m.kind = "Newer" /\ @ > 0 THEN Max(@, m.life) ELSE @]
  /\ log' = IF m.kind = "Newer" THEN [log EXCEPT ![o+1].life = 0] ELSE log
  /\ UNCHANGED <<hist, flight, ps, dead, saw, byOrigin, count>>

\* The log loses its records from offset k on.
Lose == \E k \in 0..KeepMost :
  /\ count.losses < MaxLosses /\ Len(log) > k
  /\ count' = [count EXCEPT !.losses = @ + 1]
  /\ log' = SubSeq(log, 1, k) /\ hist' = SubSeq(hist, 1, k)
  /\ IF k = 0 \/ ~On("later-loss") THEN UNCHANGED <<ps, byOrigin>>
     ELSE byOrigin' = {} /\ ps' = [p \in Procs |-> [ps[p] EXCEPT !.origin = FALSE]]
  /\ UNCHANGED <<flight, dead, newer, saw>>

\* Time passes.
Tick ==
  /\ ps' = [p \in Procs |-> Age(ps[p], p)]
  /\ log' = [i \in 1..Len(log) |-> AgeRecord(log[i])] /\ flight' = {AgeRecord(m) : m \in flight}
  /\ newer' = [newer EXCEPT !.life = Down(@, RateMin)]
  /\ UNCHANGED <<hist, dead, saw, byOrigin, count>>

Step == \/ \E p \in Procs : \/ Read(p) \/ Beat(p) \/ Claim(p) \/ Release(p) \/ ReleaseFor(p) \/ Snapshot(p) \/ Hello(p)
                            \/ Lapse(p) \/ Renew(p) \/ BeginAnew(p) \/ Die(p)
        \/ Arrive \/ NewerSends \/ NewerReads \/ Lose \/ Tick

Next == /\ Step
        /\ ended' = [j \in Roles |-> Largest({ended[j]} \cup {TokenOf(p, j) : p \in {x \in Procs : TokenOf(x, j) # TokenOf(x, j)'}})]

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
\* At most one process leads a role.
NoTwoLeaders == \A j \in Roles : Cardinality({p \in Procs : LeadsNow(p, j)}) + (IF NewerLeads THEN 1 ELSE 0) <= 1

\* A term that has ended is not led again, and tokens increase from one term to the next.
TokensIncrease == \A j \in Roles, p \in Procs : LeadsNow(p, j) => TokenOf(p, j) > ended[j]

\* Whoever knows the fold has the true one.
FoldsAgree == \A p \in Procs : ps[p].known => ps[p].read < Len(log) /\ ps[p].fold = Truth(ps[p].read)

\* Whoever leads does so by an own Claim that won the role.
LedByClaims == \A j \in Roles, p \in Procs : LeadsNow(p, j) =>
  LET k == TokenOf(p, j) IN /\ log[k+1].kind = "Claim" /\ log[k+1].by = Me(ps[p], p)
                            /\ Truth(k).holder[j] = Me(ps[p], p) /\ Truth(k).token[j] = k

\* A sound log raises no alarm.
NoAlarm == \A p \in Procs : ps[p].read + 1 < Len(log) => log[ps[p].read + 2].read < ps[p].read + 1

\* After a loss: of two leaders of a role, neither knows the fold by the origin.
NoneByOrigin == \A j \in Roles, p \in byOrigin : LeadsNow(p, j) => \A x \in Procs \ {p} : ~LeadsNow(x, j)
=============================================================================
