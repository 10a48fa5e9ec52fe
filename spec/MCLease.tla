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

\* Processes that are alike.
Others == Permutations(Procs \ {First})
All    == Permutations(Procs)

\* Hints.  Some counterexamples are too long to be found without saying which records are appended
\* after the first one, and in which order: <<sender, kind>>.
Is(m, x) == m.by[1] = x[1] /\ m.kind = x[2]
Follows(plan) == /\ \A i \in 2..Len(log) : i - 1 <= Len(plan) /\ Is(log[i], plan[i - 1])
                 /\ \A m \in flight : \E i \in Len(log)..Len(plan) : Is(m, plan[i])
HintInvalid == Follows(<< <<b, "Claim">>, <<a, "Claim">>, <<b, "Claim">> >>)
HintRelease == Follows(<< <<a, "Release">>, <<a, "Claim">>, <<a, "Release">>, <<b, "Claim">> >>)
HintFresh   == Follows(<< <<a, "Beat">>, <<b, "Claim">>, <<c, "Claim">> >>)
HintMax     == Follows(<< <<a, "Beat">>, <<c, "Claim">>, <<b, "Claim">> >>)
HintLongest == Follows(<< <<b, "Claim">>, <<b, "Hello">>, <<a, "Claim">> >>)
=============================================================================
