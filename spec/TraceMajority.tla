--------------------------- MODULE TraceMajority ---------------------------
(***************************************************************************)
(* Is what the code did a behaviour of Majority.tla?  As TraceLease.tla,   *)
(* for traces of the simulation of internal/quorum (trace_test.go there):  *)
(* one role, which all processes want.  Ballots grow more than they must,  *)
(* as that module says of the code.                                        *)
(*                                                                         *)
(* A process that boots again is another one.  Not in these traces: lost   *)
(* offsets, the largest ballot that a log may report, changes of the list, *)
(* doubt, and logs that come back with a part of their records.            *)
(***************************************************************************)
EXTENDS Majority, Traces

VARIABLES tr, at, passed   \* as in TraceLease.tla

\* The present event: as in TraceLease.tla.  log is the number of its log, wall what the wall clock
\* shows as a ballot, number that of a record's sending, b what is believed afterwards or <<>>.
Ev == Traces[tr][at + 1]
TraceLogs == 1..Logcount
TraceProcs == DOMAIN Leases
TraceHold(t) == t - t \div 10
TraceWait(t) == Waits[t]
TraceNumber(p, used) == Ev.n
TraceWall(p) == Ev.wall

Rest == UNCHANGED <<now, count>>
Refused(e, instead) == PrintT(<<"refused", at + 1, e, "instead", instead>>) /\ FALSE

\* Time passes for the process of the event.
Pass(e) ==
  LET Older(m) == IF m.life > 0 /\ m.by # Nobody /\ m.by[1] = e.p THEN [m EXCEPT !.life = Down(@, e.h)] ELSE m
  IN /\ Set(e.p, [pm[e.p] EXCEPT !.on = [i \in Logs |-> AgeBy(@[i], e.h, e.c)]])
     /\ logs' = [i \in Logs |-> [k \in 1..Len(logs[i]) |-> [x \in 1..Len(logs[i][k]) |-> Older(logs[i][k][x])]]]
     /\ flight' = {[x EXCEPT !.m = Older(@)] : x \in flight} /\ Rest

\* What p believes: the token by which it leads, its ballot, seen, how long the published bound lasts,
\* and of each log that it reads: as in TraceLease.tla, and back.
OfLog(q, p) ==
  IF ~q.known THEN <<q.n, q.read, Max(Down(Wait(q.bound), q.waited), q.over)>>
  ELSE LET x == q.fold.holder[j0] IN
       <<q.n, q.read, q.life, q.back, x>> \o
         (IF x = Nobody THEN <<None, None, 0>> ELSE <<q.fold.token[j0], q.fold.last[x], q.wait[x]>>)
Believes(P, p, b) == <<IF Led(P, p) THEN P.term ELSE 0, P.bal, P.seen, Published(P, p),
                       [i \in Logs |-> IF b[5][i] = <<>> THEN <<>> ELSE OfLog(P.on[i], p)]>>
Agrees(e) == IF e.b = <<>> THEN TRUE
             ELSE LET b == Believes(pm'[e.p], e.p, e.b) IN IF e.b = b THEN TRUE ELSE Refused(e, b)

\* The record that p sends, and whether it may.  Beats and Claims bear the number of their sending in
\* ended, which has no use there, so that a second copy is known.
RecordOf(e, q) ==
  CASE e.kind = "Beat"     -> BeatOf(q, e.p)
    [] e.kind = "Claim"    -> ClaimOf(q, e.p, Roles)
    [] e.kind = "Release"  -> [ReleaseOf(q, e.p, e.by, {}) EXCEPT !.ended = e.ended]
    [] e.kind = "Snapshot" -> SnapshotOf(q, e.p)
    [] e.kind = "Hello"    -> HelloOf(q, e.p)
MaySend(e, q) ==
  CASE e.kind = "Beat"     -> Holding(q, e.p)
    [] e.kind = "Claim"    -> IF q.known THEN MayClaim(q, e.p, j0) ELSE MayClaimFresh(q)
    [] e.kind = "Release"  -> /\ q.known /\ e.by[1] = e.p
                              /\ e.ended \subseteq {<<j, q.fold.token[j]>> : j \in HeldBy(q.fold, e.by)}
    [] e.kind = "Snapshot" -> q.known
    [] e.kind = "Hello"    -> TRUE
SendOf(e) ==
  LET P == Before(e.p) q == P.on[e.log] m == RecordOf(e, q)
      P2 == CASE e.kind = "Claim" -> Lifted(P, q, e.p)
              [] e.kind = "Release" /\ e.by = Me(q, e.p) -> After([P EXCEPT !.on[e.log].forgotten = @ \cup e.ended], e.p)
              [] OTHER -> P
      ballot == CASE e.kind = "Claim" -> P2.bal
                  [] e.kind = "Snapshot" -> Max(P.bal, P.seen)
                  [] OTHER -> IF e.ballot = P2.bal THEN P2.bal ELSE P.bal IN \* the term ends before or after its Release is made
  /\ IF /\ ~Lapsed(q, e.p) /\ MaySend(e, q)
        /\ m.by = e.by /\ m.read = e.read /\ m.longest = e.longest /\ m.fresh = e.fresh /\ ballot = e.ballot
     THEN TRUE ELSE Refused(e, <<m, ballot>>)
  /\ flight' = IF e.lost THEN flight
               ELSE flight \cup {[log |-> e.log, number |-> e.number, m |-> [m EXCEPT !.ballot = ballot, !.id = P.id[e.log],
                                                 !.ended = IF m.kind \in {"Beat", "Claim"} THEN {<<0, e.number>>} ELSE @]]}
  /\ Set(e.p, P2) /\ UNCHANGED logs /\ Rest

\* A record is appended, perhaps not for the last time.
ArriveOf(e) == LET x == CHOOSE x \in flight : x.number = e.number IN
  /\ logs' = [logs EXCEPT ![x.log][Id(x.log) + 1] = Append(@, IF x.m.id = Id(x.log) THEN x.m ELSE Record("Other", Nobody, None, None))]
  /\ flight' = IF e.again THEN flight ELSE flight \ {x}
  /\ UNCHANGED pm /\ Rest

\* A log loses its records, even if it has none.
ForgetsOf(e) == logs' = [logs EXCEPT ![e.log] = Append(@, <<>>)] /\ UNCHANGED <<flight, pm>> /\ Rest

\* A session that holds nothing may be given up on one log, as in Lease.tla.
Renew(e) == LET P == Before(e.p) IN
  /\ ~Holding(P.on[e.log], e.p)
  /\ Set(e.p, [P EXCEPT !.on[e.log].n = e.n, !.on[e.log].life = 0, !.on[e.log].forgotten = {}, !.on[e.log].back = 0])
  /\ logs' = OutliveLogs(e.p, e.log, e.n) /\ flight' = OutliveFlight(e.p, e.log, e.n) /\ Rest

\* A record that arrives twice gives its sender life once, even if the first copy was not valid.
IsCopy(e) == IF e.what # "read" THEN FALSE ELSE
  LET P == pm[e.p] q == P.on[e.log] l == logs[e.log][P.id[e.log] + 1] o == q.read + 1 m == l[o+1] IN
  /\ o < Len(l) /\ m.life > 0 /\ m.by = Me(q, e.p)
  /\ \E i \in 1..o : l[i].kind = m.kind /\ l[i].by = m.by /\ l[i].ended = m.ended
EndCopy(e) == /\ logs' = [logs EXCEPT ![e.log][pm[e.p].id[e.log] + 1][pm[e.p].on[e.log].read + 2].life = 0]
              /\ UNCHANGED <<pm, flight>> /\ Rest

Act(e) == CASE e.what = "begin"  -> BeginAnew(e.p, e.log) /\ pm'[e.p].on[e.log].from = e.s
            [] e.what = "send"   -> SendOf(e)
            [] e.what = "arrive" -> ArriveOf(e)
            [] e.what = "read"   -> Read(e.p, e.log)
            [] e.what = "anew"   -> IF Lapsed(pm[e.p].on[e.log], e.p) THEN Lapse(e.p, e.log) ELSE Renew(e)
            [] e.what = "forget" -> ForgetsOf(e)

TraceNext ==
  IF at = Len(Traces[tr]) THEN UNCHANGED <<vars, tr, at, passed>>
  ELSE IF ~passed /\ Ev.h + Ev.c > 0 THEN Pass(Ev) /\ passed' = TRUE /\ UNCHANGED <<tr, at, ended>>
  ELSE IF IsCopy(Ev) THEN EndCopy(Ev) /\ UNCHANGED <<tr, at, passed, ended>>
  ELSE /\ Act(Ev) /\ (IF Ev.p = "" THEN TRUE ELSE Agrees(Ev))
       /\ passed' = FALSE /\ at' = at + 1 /\ UNCHANGED <<tr, ended>>
TraceSpec == Init /\ tr \in 1..Len(Traces) /\ at = 0 /\ passed = FALSE /\ [][TraceNext]_<<vars, tr, at, passed>>
=============================================================================
