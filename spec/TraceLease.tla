----------------------------- MODULE TraceLease -----------------------------
(***************************************************************************)
(* Is what the code did a behaviour of Lease.tla?  The module Traces,      *)
(* which a simulation of internal/lease writes (trace_test.go), has what   *)
(* each process did, an event at a time, and what it believed afterwards.  *)
(* The specification must be able to do the same, and then believes the    *)
(* same.  If it cannot, TLC prints both beliefs and reports a deadlock.    *)
(*                                                                         *)
(* Whole processes on one partition (internal/sim) are seen from outside:  *)
(* what they send, read and answer.  Their events have the field seen.     *)
(* The specification adds the steps that nobody sees (Hidden).  In it a    *)
(* process may lead more roles than the real one says.                     *)
(*                                                                         *)
(* Times are in microseconds.  Each event has the time that has passed by  *)
(* the clocks of its process since that process's former event.  So only   *)
(* the process of the present event is up to date, and NoTwoLeaders is     *)
(* left to the simulation, which knows true time.  Not in these traces,    *)
(* since the specification has not got them: wall clocks that are set,     *)
(* Snapshots in parts, gaps, sentinels, members of a newer version (their  *)
(* records are).                                                           *)
(***************************************************************************)
EXTENDS Lease, Traces

VARIABLES
  tr, at,            \* the trace, and how many of its events are explained
  passed             \* time has passed, and the event has not happened yet

\* The present event.  Its fields: what, the process p, the time that has passed by the clocks by
\* which p holds (h) and claims (c), the number n of its session and its belief b afterwards.  begin
\* has s and origin, as Begin, and whole: the log was empty.  send has the record's fields, and lost:
\* it never arrives.  arrive has the kind, epoch, and again: it arrives once more.  forget has ended.
Ev == Traces[tr][at + 1]

\* These replace operators of Rules.tla, as TraceHold does Hold: leases are in microseconds, and sessions
\* have the numbers that the code gives them.
TraceProcs == DOMAIN Leases
TraceHold(t) == t - t \div 10
TraceWait(t) == Waits[t]
TraceNumber(p, used) == Ev.n

\* Time passes for the process of the event.
Pass(e) ==
  LET Older(m) == IF m.life > 0 /\ m.by # Nobody /\ m.by[1] = e.p THEN [m EXCEPT !.life = Down(@, e.h)] ELSE m
  IN /\ Set(e.p, AgeBy(ps[e.p], e.h, e.c))
     /\ log' = [i \in 1..Len(log) |-> Older(log[i])] /\ flight' = {Older(m) : m \in flight}
     /\ UNCHANGED hist /\ Rest

\* What q believes.  Unknown: how long it still waits for a fresh Claim.  Known: its life, newer, what
\* it leads, and of each role the holder, the token, last of the holder, and how long it waits.
Believes(q, p) ==
  IF ~q.known THEN <<q.n, q.read, Max(Down(Wait(q.bound), q.waited), q.over)>>
  ELSE <<q.n, q.read, q.life, q.fold.newer, {j \in Roles : Leads(q, p, j)},
         [j \in Roles |-> LET x == q.fold.holder[j] IN
            IF x = Nobody THEN <<x, None, None, q.waitNewer>>
            ELSE <<x, q.fold.token[j], q.fold.last[x], Max(q.wait[x], q.waitNewer)>>]>>
Refused(e, instead) == PrintT(<<"refused", at + 1, e, "instead", instead>>) /\ FALSE

\* What callers see: each role led, with its token; each holder that is told, with token and process.
Sees(e, q) == /\ \A x \in e.leads : Leads(q, e.p, x[1]) /\ q.fold.token[x[1]] = x[2]
              /\ \A x \in e.holders : /\ q.known /\ q.fold.holder[x[1]] # Nobody
                                      /\ q.fold.holder[x[1]][1] = x[3] /\ q.fold.token[x[1]] = x[2]
Agrees(e) == IF "seen" \in DOMAIN e
  THEN IF "leads" \notin DOMAIN e \/ Sees(e, ps'[e.p]) THEN TRUE ELSE Refused(e, Believes(ps'[e.p], e.p))
  ELSE LET b == Believes(ps'[e.p], e.p) IN IF e.b = b THEN TRUE ELSE Refused(e, b)

\* The record that p sends, and whether it may.  Records in flight bear the number of their sending in
\* ballot, which has no use on one log, so that an arrival names the record.  A record that is lost is
\* not in flight: as if it never arrived.
RecordOf(e, q) ==
  CASE e.kind = "Beat"     -> BeatOf(q, e.p)
    [] e.kind = "Claim"    -> ClaimOf(q, e.p, e.roles)
    [] e.kind = "Release"  -> [ReleaseOf(q, e.p, e.by, {}) EXCEPT !.ended = e.ended]
    [] e.kind = "Snapshot" -> SnapshotOf(q, e.p)
    [] e.kind = "Hello"    -> HelloOf(q, e.p)
MaySend(e, q) ==
  CASE e.kind = "Beat"     -> Holding(q, e.p) /\ (~Lapsed(q, e.p) \/ "seen" \in DOMAIN e)
    [] e.kind = "Claim"    -> IF q.known THEN \A j \in e.roles : MayClaim(q, e.p, j) ELSE MayClaimFresh(q)
    [] e.kind = "Release"  -> /\ q.known /\ e.by[1] = e.p
                              /\ e.ended \subseteq {<<j, q.fold.token[j]>> : j \in HeldBy(q.fold, e.by)}
                              /\ IF e.by = Me(q, e.p) THEN e.ended \subseteq q.forgotten ELSE TRUE
    [] e.kind = "Snapshot" -> q.known
    [] e.kind = "Hello"    -> TRUE
SendOf(e) == LET q == ps[e.p] m == RecordOf(e, q)
                 late == "seen" \in DOMAIN e /\ Lapsed(q, e.p) IN \* made before a suspension: it proves nothing
  /\ IF /\ (late \/ Able(e.p)) /\ MaySend(e, q)
        /\ m.by = e.by /\ m.read = e.read /\ m.longest = e.longest /\ m.fresh = e.fresh
     THEN TRUE ELSE Refused(e, m)
  /\ flight' = IF e.lost THEN flight ELSE flight \cup {[m EXCEPT !.ballot = e.ballot, !.life = IF late THEN 0 ELSE @]}
  /\ UNCHANGED <<log, hist, ps>> /\ Rest

\* A record is appended: one in flight, perhaps not for the last time, or one that is of a newer
\* version or without effect.
ArriveOf(e) ==
  LET m == IF e.kind = "Newer" THEN NewerRecord ELSE IF e.kind = "Other" THEN Record("Other", Nobody, None, None)
           ELSE CHOOSE x \in flight : x.ballot = e.ballot
  IN /\ log' = Append(log, [m EXCEPT !.id = e.epoch]) /\ hist' = Append(hist, Fold(Truth(Len(log) - 1), m, Len(log)))
     /\ flight' = IF e.again THEN flight ELSE flight \ {m}
     /\ UNCHANGED ps /\ Rest

\* A process begins.  Here the simulation says whether the log is whole.
BeginOf(e) ==
  /\ Set(e.p, [Begin(e.p, e.s, e.n, e.origin) EXCEPT !.bound = IF e.whole THEN T[e.p] ELSE Tmax])
  /\ log' = OutliveLog(e.p, e.n) /\ flight' = OutliveFlight(e.p, e.n) /\ UNCHANGED hist /\ Rest

\* A session forgets roles, and Releases them later, or the Release is lost.
ForgetOf(e) ==
  /\ Set(e.p, [ps[e.p] EXCEPT !.forgotten = @ \cup e.ended]) /\ UNCHANGED <<log, hist, flight>> /\ Rest

\* A record that arrives twice gives its sender life once, even if the first copy was not valid.
IsCopy(e, q) == LET o == q.read + 1 m == log[o+1] IN
  /\ e.what = "read" /\ o < Len(log) /\ m.life > 0 /\ m.by = Me(q, e.p)
  /\ \E i \in 1..o : log[i].by = m.by /\ log[i].ballot = m.ballot

\* What nobody sees before e: a second copy, a new session, a role that is forgotten before its
\* Release, and that the reader proves the log's origin.  "": nothing.  A record is seen after it was
\* stamped, perhaps much later if its process was suspended, so a session may lapse while it has life here.
Hidden(e) == LET q == ps[e.p] IN
  IF IsCopy(e, q) THEN "copy"
  ELSE IF "seen" \notin DOMAIN e THEN ""
  ELSE CASE e.what = "send" /\ e.n # q.n /\ (Lapsed(q, e.p) \/ e.kind # "Release") -> "session"
         [] e.what = "send" /\ e.kind = "Release" /\ e.by = Me(q, e.p) /\ ~(e.ended \subseteq q.forgotten) -> "forget"
         [] e.what = "read" /\ e.origin /\ ~q.known /\ ~q.origin /\ q.from = 0 -> "origin"
         [] OTHER -> ""
Do(hidden, e) == CASE hidden = "copy" -> log' = [log EXCEPT ![ps[e.p].read + 2].life = 0] /\ UNCHANGED <<hist, ps, flight>> /\ Rest
                   [] hidden = "session" ->
       /\ Set(e.p, [ps[e.p] EXCEPT !.n = e.n, !.life = 0, !.forgotten = {}]) /\ UNCHANGED hist
       /\ log' = OutliveLog(e.p, e.n) /\ flight' = OutliveFlight(e.p, e.n) /\ Rest
                   [] hidden = "forget"  -> ForgetOf(e)
                   [] hidden = "origin"  -> Set(e.p, [ps[e.p] EXCEPT !.origin = TRUE]) /\ UNCHANGED <<log, hist, flight>> /\ Rest

Act(e) == CASE e.what = "begin"  -> BeginOf(e)
            [] e.what = "send"   -> SendOf(e)
            [] e.what = "arrive" -> ArriveOf(e)
            [] e.what = "forget" -> ForgetOf(e)
            [] e.what = "read"   -> Read(e.p)
            [] e.what = "lapse"  -> Lapse(e.p)
            [] e.what = "renew"  -> Renew(e.p)
            [] e.what = "see"    -> UNCHANGED vars

TraceNext ==
  IF at = Len(Traces[tr]) THEN UNCHANGED <<vars, tr, at, passed>>
  ELSE IF ~passed /\ Ev.h + Ev.c > 0 THEN Pass(Ev) /\ passed' = TRUE /\ UNCHANGED <<tr, at, ended>>
  ELSE IF Hidden(Ev) # "" THEN Do(Hidden(Ev), Ev) /\ UNCHANGED <<tr, at, passed, ended>>
  ELSE /\ Act(Ev) /\ (IF Ev.what = "arrive" THEN TRUE ELSE Agrees(Ev))
       /\ passed' = FALSE /\ at' = at + 1 /\ UNCHANGED <<tr, ended>>
TraceSpec == Init /\ tr \in 1..Len(Traces) /\ at = 0 /\ passed = FALSE /\ [][TraceNext]_<<vars, tr, at, passed>>
TraceView == <<tr, at, passed>>
=============================================================================
