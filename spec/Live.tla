-------------------------------- MODULE Live --------------------------------
(***************************************************************************)
(* Liveness, in a small world: for a while anything may happen that        *)
(* Lease.tla allows; then it is calm; and then somebody leads the role.    *)
(* When the calm begins, records in flight may be lost; after that none    *)
(* is, and nobody begins again.  In the calm a process does what the       *)
(* policy asks: it claims when it may and has read everything, one record  *)
(* at a time, and it Releases what it has forgotten, or what its former    *)
(* sessions hold, before more time passes.  Records take less than a tick: *)
(* if they take longer than leases last, nothing can be promised.          *)
(* A run is over once somebody leads.                                      *)
(***************************************************************************)
EXTENDS MCLease
CONSTANTS MaxCalm            \* how many records there may be in the calm: a bound that no run may reach (NotFull)
VARIABLE calm

role == CHOOSE j \in Roles : TRUE
\* Somebody leads; p has read all; a record of p is in flight; the bound allows another record.
Leader == \E p \in Procs : LeadsNow(p, role)
Caught(p)  == ps[p].read + 1 = Len(log)
Sending(p) == \E m \in flight : m.by # Nobody /\ m.by[1] = p
CalmRoom   == Len(log) + Cardinality(flight) < MaxCalm
\* p sends m.
Put(p, m)  == CalmRoom /\ flight' = flight \cup {m} /\ UNCHANGED <<log, hist, ps>> /\ Rest

\* p still has to Release the role in the name of session x: its own one, which has forgotten the
\* role, or a former one.
Owes(p, x) == LET q == ps[p] IN
  /\ q.known /\ x \in Holders(q.fold) /\ x[1] = p
  /\ IF x = Me(q, p) THEN On("release-repeat") /\ ~Keeps(q, p, role) /\ ~Lapsed(q, p) ELSE On("release-former")

\* What the policy does, and time, which waits for it.
CalmClaim(p) == /\ Able(p) /\ Caught(p) /\ ~Sending(p)
                /\ IF ps[p].known THEN MayClaim(ps[p], p, role) ELSE MayClaimFresh(ps[p])
                /\ Put(p, ClaimOf(ps[p], p, {role}))
CalmRelease(p) == \E x \in Holders(ps[p].fold) :
                /\ Able(p) /\ Caught(p) /\ ~Sending(p) /\ Owes(p, x)
                /\ Put(p, ReleaseOf(ps[p], p, x, {role}))
\* A session that holds something goes on with its Beats, although it has forgotten this role.
CalmBeat(p) == /\ Able(p) /\ Caught(p) /\ ~Sending(p) /\ Holding(ps[p], p) /\ ps[p].life < Hold(T[p])
               /\ Put(p, BeatOf(ps[p], p))
CalmTick == /\ flight = {} /\ \A p \in Procs : Caught(p) /\ \A x \in Holders(ps[p].fold) : ~Owes(p, x)
            /\ Tick

\* The calm begins; a step in the calm; the steps that cannot be put off for ever.
Begins == ~calm /\ calm' = TRUE /\ flight' \in SUBSET flight /\ UNCHANGED <<log, hist, ps, ended>> /\ Rest
In(A)  == calm /\ ~Leader /\ A /\ calm' = TRUE /\ UNCHANGED ended
Ticks       == In(CalmTick)
Arrives     == In(Arrive)
Reads(p)    == In(Read(p))
ClaimsIt(p)  == In(CalmClaim(p))
Releases(p) == In(CalmRelease(p))
Lapses(p)   == In(Lapse(p))
LiveNext == \/ ~calm /\ Next /\ calm' = FALSE
            \/ Begins \/ Ticks \/ Arrives
            \/ \E p \in Procs : Reads(p) \/ ClaimsIt(p) \/ Releases(p) \/ Lapses(p) \/ In(CalmBeat(p))

all == <<vars, calm>>
LiveSpec == /\ Init /\ calm = FALSE /\ [][LiveNext]_all
            /\ WF_all(Begins) /\ WF_all(Ticks) /\ WF_all(Arrives)
            /\ \A p \in Procs : WF_all(Reads(p)) /\ WF_all(ClaimsIt(p)) /\ WF_all(Releases(p)) /\ WF_all(Lapses(p))

\* In the calm somebody leads at last.
LedAgain == calm ~> Leader
NotFull  == CalmRoom \/ Leader
=============================================================================
