------------------------------ MODULE MCLease ------------------------------
(* What TLC needs to search Lease.tla: values that a .cfg file cannot state, and hints. *)
EXTENDS Lease, TLC
CONSTANTS a, b, c

\* Leases: all of one tick or of two; First's alone is longer; shorter.
T1 == [p \in Procs |-> 1]
T2 == [p \in Procs |-> 2]
TLong  == [p \in Procs |-> IF p = First THEN 2 ELSE 1]
TShort == [p \in Procs |-> IF p = First THEN 1 ELSE 2]

\* Clocks: all alike; First's half as fast as the others'.
R1 == [p \in Procs |-> 1]
RSlow == [p \in Procs |-> IF p = First THEN 1 ELSE 2]

Others == Permutations(Procs \ {First})
All    == Permutations(Procs)

\* Hints: some counterexamples are too long to be found without saying who may send what.
Sent   == flight \cup {log[i] : i \in 2..Len(log)}
By(p)  == {m \in Sent : m.by # Nobody /\ m.by[1] = p}
One(p, kind) == Cardinality({m \in By(p) : m.kind = kind}) <= 1
HintLongest == /\ One(a, "Claim") /\ One(b, "Claim") /\ One(b, "Hello") /\ ps[b].n = 0
               /\ \A m \in By(a) : m.kind = "Claim" /\ m.fresh
               /\ \A m \in By(b) : m.kind = "Hello" => m.read = 0
HintInvalid == /\ One(a, "Claim")
               /\ \A m \in By(a) : m.roles = {2} /\ m.read = 0
               /\ \A m \in By(b) : Cardinality(m.roles) = 1
HintFresh   == /\ One(a, "Beat") /\ One(b, "Claim") /\ One(c, "Claim")
               /\ \A m \in By(a) : m.kind = "Beat"
               /\ \A m \in By(b) : m.fresh /\ m.roles = {1}
               /\ \A m \in By(c) : m.kind = "Claim" /\ m.roles = {2}
=============================================================================
