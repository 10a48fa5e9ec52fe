------------------------------ MODULE MCLease ------------------------------
(* What TLC needs to search Lease.tla: values that a .cfg file cannot state, and hints. *)
EXTENDS Lease, TLC
CONSTANTS a, b, c

\* Leases: all of one tick; all of two; First's longer than the others'; First's shorter.
T1 == [p \in Procs |-> 1]
T2 == [p \in Procs |-> 2]
TLong  == [p \in Procs |-> IF p = First THEN 2 ELSE 1]
TShort == [p \in Procs |-> IF p = First THEN 1 ELSE 2]

\* Clocks: all alike; First's half as fast as the others'.
R1 == [p \in Procs |-> 1]
RSlow == [p \in Procs |-> IF p = First THEN 1 ELSE 2]

\* Processes that are alike.
Others == Permutations(Procs \ {First})
All    == Permutations(Procs)

\* Hints.  Some counterexamples are too long to be found without saying which records are appended
\* after the first one, and in which order: <<sender, kind, read, roles>>.
Is(m, x) == m.by[1] = x[1] /\ m.kind = x[2] /\ m.read = x[3] /\ m.roles = x[4]
Follows(plan) == /\ \A i \in 2..Len(log) : i - 1 <= Len(plan) /\ Is(log[i], plan[i - 1])
                 /\ \A m \in flight : \E i \in Len(log)..Len(plan) : Is(m, plan[i])
HintInvalid == Follows(<< <<b, "Claim", 0, {2}>>, <<a, "Claim", 0, {2}>>, <<b, "Claim", 1, {1}>> >>)
HintRelease == Follows(<< <<a, "Release", 0, {}>>, <<a, "Claim", 1, {1}>>, <<a, "Release", 0, {}>>, <<b, "Claim", 3, {1}>> >>)
HintFresh   == Follows(<< <<a, "Beat", 0, {}>>, <<b, "Claim", 0, {1}>>, <<c, "Claim", 2, {2}>> >>)
HintMax     == Follows(<< <<a, "Beat", 0, {}>>, <<c, "Claim", 0, {2}>>, <<b, "Claim", 2, {1}>> >>)
HintLongest == Follows(<< <<b, "Claim", 0, {1}>>, <<b, "Hello", 0, {}>>, <<a, "Claim", 2, {1}>> >>)
=============================================================================
