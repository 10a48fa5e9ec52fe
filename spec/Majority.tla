----------------------------- MODULE Majority -----------------------------
(***************************************************************************)
(* One role on a majority of N small logs: docs/design.md, "On a majority  *)
(* of small logs".  Each log follows Rules.tla.  A log may forget all its  *)
(* records and come back with another id; a process may restart, and may   *)
(* miss a record.  The same adversary as in Lease.tla delays, reorders and *)
(* loses records.  Tokens are ballots.                                     *)
(*                                                                         *)
(* T, rho and N are the same for all.  Left out: the policy (who claims    *)
(* when and gives way to whom), the largest ballot that a log may report,  *)
(* records of a newer version, and more roles than one.                    *)
(*                                                                         *)
(* Three switches stand for no rule of the protocol.  Without "new-id" a   *)
(* log comes back from an image of its memory with its former id, which    *)
(* the assumptions exclude.  Without "any-ballot" a Claim that is not      *)
(* fresh counts only if its ballot exceeds all in the log: a plausible     *)
(* rule in place of won-lifts, but not a sound one.  Without               *)
(* "least-ballot" ballots grow more than they must, as in the code.        *)
(***************************************************************************)
EXTENDS Rules

CONSTANTS
  Logs,
  Start,             \* "cold": the logs are empty, nobody knows a fold, and everybody has waited long enough
                     \* "held": process First leads, on all logs
  First, Late,       \* held: the processes Late have begun after First's Claims and read nothing; others have read all
  MaxSent,           \* how many records are in the logs and in flight
  MaxFlight, MaxBegins, MaxForgets, MaxRestarts, MaxMissed, MaxTime,
  Kinds,
  WallStep, WallOff  \* by how much the wall clocks grow in a tick; [Procs -> how far each is ahead]

VARIABLES
  logs,              \* per log its incarnations, each a sequence of records; the last one serves
  flight,            \* the records in flight: [log, m]
  pm,                \* per process: on (its state on each log), id (of the incarnation that it reads), bal, seen, term
  now, ended, count  \* ended: the largest token whose term is over

vars == <<logs, flight, pm, now, ended, count>>

\* The role.
j0 == CHOOSE j \in Roles : TRUE

\* More than half of the logs.
Majorities == IF On("majority") THEN Cardinality(Logs) \div 2 + 1 ELSE 1

\* The id of the incarnation that serves, and its records.
Id(i) == Len(logs[i]) - 1
Now(i) == logs[i][Len(logs[i])]

\* A process's wall clock.
Wall(p) == WallOff[p] + WallStep * (now + 1)

\* Process P with its ballot raised to b at least.
Lift(P, b) == [P EXCEPT !.bal = Max(@, b)]

\* The logs on which p holds the role, and from which own evidence of ballot b or more came back.
Counts(P, p, b) == {i \in Logs : Keeps(P.on[i], p, j0) /\ (On("back") => P.on[i].back >= b)}

\* The logs of S on which V is young.
Young(P, S) == {i \in S : P.on[i].life > 0}

\* The logs that sustain the term of p.
Sustain(P, p) == Young(P, Counts(P, p, P.term))

\* p leads: it has a term, and a majority of the logs sustains it.
Led(P, p) == P.term # 0 /\ Cardinality(Sustain(P, p)) >= Majorities

\* first: a term that is not led now has ended; the ballot is larger than its token.
Ends(P, p) == IF P.term = 0 \/ Led(P, p) \/ ~On("ends") THEN P
              ELSE [(IF On("end-lifts") THEN Lift(P, P.term + 1) ELSE P) EXCEPT !.term = 0]

\* begins: the role is held on a majority of the logs with back >= bal and V young.
Begins(P, p) == IF P.term = 0 /\ P.bal > 0 /\ Cardinality(Young(P, Counts(P, p, P.bal))) >= Majorities
                THEN [P EXCEPT !.term = P.bal] ELSE P

\* What comes before everything that a process does, and what comes after it.
Before(p) == IF On("check-first") THEN Ends(pm[p], p) ELSE pm[p]
After(P, p) == Begins(Ends(P, p), p)

\* Nth: what is left of the n-th youngest V on the logs S.  Published: what is left of the V that
\* completes a majority, from the youngest on; 0 if none does.  It is what IsLeader looks at.
RECURSIVE Nth(_, _, _)
Nth(P, S, n) == LET x == CHOOSE x \in S : \A y \in S : P.on[x].life >= P.on[y].life IN
  IF n = 1 THEN P.on[x].life ELSE Nth(P, S \ {x}, n - 1)
Published(P, p) == LET S == Sustain(P, p) IN
  IF P.term = 0 \/ S = {} THEN 0
  ELSE IF ~On("published-oldest") THEN IF Cardinality(S) < Majorities THEN 0 ELSE Nth(P, S, 1)
  ELSE IF Cardinality(S) < Majorities THEN IF On("published-all") THEN 0 ELSE Nth(P, S, Cardinality(S))
  ELSE Nth(P, S, Majorities)

-----------------------------------------------------------------------------
\* How many records there are; the bounds allow another one.
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE x \in S : TRUE IN f[x] + Sum(f, S \ {x})
InLogs == Sum([i \in Logs |-> Sum([k \in 1..Len(logs[i]) |-> Len(logs[i][k])], 1..Len(logs[i]))], Logs)
Room == InLogs + Cardinality(flight) < MaxSent /\ Cardinality(flight) < MaxFlight

\* On log i: the sessions that a record names, the number of the session that p takes next, and the
\* records when p has taken session n.
Used(i) == {e.m.by : e \in {x \in flight : x.log = i}}
           \cup UNION {{logs[i][k][x].by : x \in 1..Len(logs[i][k])} : k \in 1..Len(logs[i])}
NewN(p, i) == IF On("fresh-session") THEN FreshNumber(p, Used(i)) ELSE pm[p].on[i].n
OutliveLogs(p, i, n)   == [logs EXCEPT ![i] = [k \in 1..Len(@) |-> [x \in 1..Len(@[k]) |-> Outlive(@[k][x], p, n)]]]
OutliveFlight(p, i, n) == {IF e.log = i THEN [e EXCEPT !.m = Outlive(@, p, n)] ELSE e : e \in flight}

\* begin(s) on a small log: an empty log is unknown like any other, since its earlier incarnation
\* may have been led a moment ago.
BeginOn(p, s, n) == LET q == Begin(p, s, n, FALSE) IN
  IF s = 0 /\ ~On("empty-unknown") THEN Knows(q, p, EmptyFold, "-", "-") ELSE q

\* The Claim by which First holds the role on each log.
FirstClaim == [ClaimOf(Begin(First, 0, 0, FALSE), First, Roles) EXCEPT !.ballot = WallOff[First] + WallStep]

Init ==
  /\ flight = {} /\ now = 0 /\ ended = 0 /\ count = [begins |-> 0, forgets |-> 0, restarts |-> 0, missed |-> 0]
  /\ logs = [i \in Logs |-> IF Start = "cold" THEN << <<>> >> ELSE << <<[FirstClaim EXCEPT !.life = 0]>> >>]
  /\ pm = [p \in Procs |->
       [on |-> [i \in Logs |-> IF Start = "cold" THEN [Begin(p, 0, 0, FALSE) EXCEPT !.waited = WaitsAtMost]
                               ELSE IF p \in Late THEN Begin(p, 1, 0, FALSE)
                               ELSE Consume(Begin(p, 0, 0, FALSE), p, <<FirstClaim>>, 0)],
        id   |-> [i \in Logs |-> 0],
        bal  |-> IF Start = "held" /\ p = First THEN FirstClaim.ballot ELSE 0,
        seen |-> IF Start = "held" /\ p # First /\ p \notin Late THEN FirstClaim.ballot ELSE 0,
        term |-> IF Start = "held" /\ p = First THEN FirstClaim.ballot ELSE 0]]

-----------------------------------------------------------------------------
\* The state of p becomes P.
Set(p, P) == pm' = [pm EXCEPT ![p] = P]

\* p sends m to log i; every record but a Snapshot bears bal.  Switched off: back counts what was
\* sent, not what came back.
Send(p, i, P, m) ==
  /\ Room /\ m.kind \in Kinds
  /\ flight' = flight \cup {[log |-> i, m |-> [m EXCEPT !.id = P.id[i]]]}
  /\ Set(p, IF On("back-read") \/ m.life = 0 THEN P ELSE After([P EXCEPT !.on[i].back = Max(@, m.ballot)], p))
  /\ UNCHANGED <<logs, now, count>>

\* p sends a Beat, a Claim, a Release or a Snapshot on log i, by the rules of that log.
Beat(p, i) == LET P == Before(p) q == P.on[i] IN
  /\ Holding(q, p) /\ ~Lapsed(q, p)
  /\ Send(p, i, P, [BeatOf(q, p) EXCEPT !.ballot = P.bal])

\* fresh: before a Claim on a log that is not known the ballot is at least the wall clock.
\* Switched off "wall-every": only before the first one.  Switched off "least-ballot": it exceeds
\* seen before every Claim, too, so that no Beat has to follow the Claim.
Lifted(P, q, p) == LET lifts == ~q.known /\ On("wall") /\ (On("wall-every") \/ P.bal = 0)
                       P1 == IF On("least-ballot") THEN P ELSE Lift(P, P.seen + 1) IN
  Begins(IF lifts THEN Lift(P1, Wall(p)) ELSE P1, p)
Claim(p, i) == LET P == Before(p) q == P.on[i] P2 == Lifted(P, q, p) IN
  /\ ~Lapsed(q, p)
  /\ IF q.known THEN MayClaim(q, p, j0) ELSE MayClaimFresh(q)
  /\ Send(p, i, P2, [ClaimOf(q, p, Roles) EXCEPT !.ballot = P2.bal])

Release(p, i) == LET P == Before(p) q == P.on[i]
                     P2 == [P EXCEPT !.on[i].forgotten = @ \cup {<<j0, q.fold.token[j0]>>}] IN
  /\ q.known /\ ~Lapsed(q, p) /\ q.fold.holder[j0] = Me(q, p)
  /\ Send(p, i, After(P2, p), [ReleaseOf(q, p, Me(q, p), Roles) EXCEPT !.ballot = P.bal])

Snapshot(p, i) == LET P == Before(p) q == P.on[i] IN
  /\ q.known /\ ~Lapsed(q, p)
  /\ Send(p, i, P, [SnapshotOf(q, p) EXCEPT !.ballot = IF On("snap-ballot") THEN Max(P.bal, P.seen) ELSE P.bal])

\* A session lapses on one log; it ends there alone.
Lapse(p, i) == LET P == Before(p) n == NewN(p, i) IN
  /\ Lapsed(P.on[i], p)
  /\ Set(p, After([P EXCEPT !.on[i].n = n, !.on[i].life = 0, !.on[i].forgotten = {}, !.on[i].back = 0], p))
  /\ logs' = OutliveLogs(p, i, n) /\ flight' = OutliveFlight(p, i, n)
  /\ UNCHANGED <<now, count>>

\* p sees another id, or its position jumps.  Switched off: it does not wait at another id.
BeginAnew(p, i) == \E s \in 0..Len(Now(i)) :
  LET P == Before(p) n == NewN(p, i) other == P.id[i] # Id(i) IN
  /\ IF other THEN TRUE ELSE count.begins < MaxBegins
  /\ count' = [count EXCEPT !.begins = IF other THEN @ ELSE @ + 1]
  /\ Set(p, After([P EXCEPT !.on[i] = IF On("id-wait") THEN BeginOn(p, s, n) ELSE [BeginOn(p, s, n) EXCEPT !.waited = WaitsAtMost],
                            !.id[i] = Id(i)], p))
  /\ logs' = OutliveLogs(p, i, n) /\ flight' = OutliveFlight(p, i, n)
  /\ UNCHANGED now

\* p reads its next record on log i, or misses that and reads the one after it: a gap, so it begins
\* again behind it.  won: an own Claim read back and valid makes bal larger than seen.
Read(p, i) == \E missed \in BOOLEAN : LET
    P == Before(p)
    l == logs[i][P.id[i] + 1]
    q == P.on[i]
    o == q.read + 1 + (IF missed THEN 1 ELSE 0) IN
  /\ o < Len(l)
  /\ IF missed THEN count.missed < MaxMissed ELSE TRUE
  /\ LET m     == l[o + 1]
         alarm == missed /\ On("gap")
         n     == IF alarm THEN NewN(p, i) ELSE q.n
         q2    == IF alarm THEN Begin(p, o + 1, n, FALSE) ELSE Consume(q, p, l, o)
         own   == m.by = Me(q, p)
         won   == /\ q2.known /\ q2.fold.holder[j0] = Me(q2, p)
                  /\ ~(q.known /\ q.fold.holder[j0] = Me(q, p) /\ q.fold.token[j0] = q2.fold.token[j0])
         sees  == /\ ~own /\ (On("seen-unknown") \/ q.known)
                  /\ (On("seen-beat") \/ m.kind # "Beat") /\ (On("seen-claim") \/ m.kind # "Claim")
         P2    == [P EXCEPT !.on[i] = q2, !.seen = IF sees THEN Max(@, m.ballot) ELSE @]
         P3    == IF won /\ On("won-lifts") THEN Lift(P2, P2.seen + 1) ELSE P2
     IN /\ Set(p, After(P3, p))
        /\ logs' = IF alarm THEN OutliveLogs(p, i, n)
                   ELSE IF q2.known /\ own THEN [logs EXCEPT ![i][P.id[i] + 1][o + 1].life = 0] ELSE logs
        /\ flight' = IF alarm THEN OutliveFlight(p, i, n) ELSE flight
        /\ count' = IF missed THEN [count EXCEPT !.missed = @ + 1] ELSE count
  /\ UNCHANGED now

\* A process starts again, with no memory; it reads from the ends of the logs on.
Restart(p) ==
  /\ count.restarts < MaxRestarts
  /\ count' = [count EXCEPT !.restarts = @ + 1]
  /\ pm' = [pm EXCEPT ![p] = [on |-> [i \in Logs |-> BeginOn(p, Len(Now(i)), NewN(p, i))],
                              id |-> [i \in Logs |-> Id(i)], bal |-> 0, seen |-> 0, term |-> 0]]
  /\ UNCHANGED <<logs, flight, now>>

\* A record in flight is appended.  Readers skip it if it names another incarnation.  A Claim that
\* does not count wins nothing, and is evidence.
Counting(m, l) == IF ~On("any-ballot") /\ m.kind = "Claim" /\ ~m.fresh /\ \E x \in 1..Len(l) : l[x].ballot >= m.ballot
                  THEN [m EXCEPT !.roles = {}] ELSE m
Arrive == \E e \in flight :
  /\ logs' = [logs EXCEPT ![e.log][Id(e.log) + 1] =
                Append(@, IF e.m.id = Id(e.log) \/ ~On("skip-other") THEN Counting(e.m, @) ELSE Record("Other", Nobody, None, None))]
  /\ flight' = flight \ {e}
  /\ UNCHANGED <<pm, now, count>>

\* A log loses its memory, and comes back with another id.
Forgets(i) ==
  /\ count.forgets < MaxForgets /\ Now(i) # <<>>
  /\ IF On("new-id") THEN logs' = [logs EXCEPT ![i] = Append(@, <<>>)]
     ELSE \E k \in 0..(Len(Now(i)) - 1) : logs' = [logs EXCEPT ![i][Id(i) + 1] = SubSeq(@, 1, k)]
  /\ count' = [count EXCEPT !.forgets = @ + 1]
  /\ UNCHANGED <<flight, pm, now>>

\* Time passes.
Tick ==
  /\ now < MaxTime /\ now' = now + 1
  /\ pm' = [p \in Procs |-> [pm[p] EXCEPT !.on = [i \in Logs |-> Age(pm[p].on[i], p)]]]
  /\ logs' = [i \in Logs |-> [k \in 1..Len(logs[i]) |-> [x \in 1..Len(logs[i][k]) |-> AgeRecord(logs[i][k][x])]]]
  /\ flight' = {[e EXCEPT !.m = AgeRecord(@)] : e \in flight}
  /\ UNCHANGED count

Step == \/ \E p \in Procs : \/ Restart(p)
                            \/ \E i \in Logs : \/ Read(p, i) \/ Beat(p, i) \/ Claim(p, i) \/ Release(p, i)
                                               \/ Snapshot(p, i) \/ Lapse(p, i) \/ BeginAnew(p, i)
        \/ Arrive \/ Tick \/ \E i \in Logs : Forgets(i)

\* The token by which p leads now, 0 if it does not lead.
Token(p) == IF Led(pm[p], p) THEN pm[p].term ELSE 0
Next == Step /\ ended' = Largest({ended} \cup {Token(p) : p \in {x \in Procs : Token(x) # Token(x)'}})
Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
\* At most one process leads the role.
NoTwoLeaders == Cardinality({p \in Procs : Led(pm[p], p)}) <= 1

\* On each log at most one process has a lease.
NoTwoHolders == \A i \in Logs : Cardinality({p \in Procs : Leads(pm[p].on[i], p, j0)}) <= 1

\* A term that has ended is not led again, and tokens increase from one term to the next.
TokensIncrease == \A p \in Procs : Led(pm[p], p) => pm[p].term > ended

\* Whoever knows the fold of an incarnation of a log has the true one.
RECURSIVE Truth(_, _)
Truth(l, o) == IF o = None THEN EmptyFold ELSE Fold(Truth(l, o - 1), l[o+1], o)
FoldsAgree == \A p \in Procs, i \in Logs : LET q == pm[p].on[i] IN q.known => q.fold = Truth(logs[i][pm[p].id[i] + 1], q.read)

\* A log whose records were not missed raises no alarm.
NoAlarm == \A p \in Procs, i \in Logs : LET o == pm[p].on[i].read + 1 l == logs[i][pm[p].id[i] + 1] IN
  o < Len(l) => l[o+1].read < o

\* A process has published that it leads if and only if it does.  A majority of the logs sustains the
\* term for as long as was published, even if nothing more is read.
PublishedIsSound == \A p \in Procs : LET P == pm[p] left == Published(P, p) IN
  /\ (left > 0) = Led(P, p)
  /\ left > 0 => Cardinality({i \in Sustain(P, p) : P.on[i].life >= left}) >= Majorities
=============================================================================
