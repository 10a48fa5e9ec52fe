----------------------------- MODULE MCMajority -----------------------------
(* What TLC needs to search Majority.tla: values that a .cfg file cannot state. *)
EXTENDS Majority, TLC
CONSTANTS a, b, c, l1, l2, l3
T1 == [p \in Procs |-> 1]
T2 == [p \in Procs |-> 2]
R1 == [p \in Procs |-> 1]

\* Wall clocks: true; apart, but each within T/2 of true time (with WallStep = 10, T = 1 tick).
Walls == [p \in Procs |-> 0]
WallsApart == [p \in Procs |-> IF p = First THEN 4 ELSE -4]

\* A hint, as in MCLease.tla: which records are appended to log l1 after the first one, and in which
\* order: <<sender, kind, read>>.
Is(m, x) == m.by[1] = x[1] /\ m.kind = x[2] /\ m.read = x[3]
Follows(plan) == /\ \A i \in 2..Len(Now(l1)) : i - 1 <= Len(plan) /\ Is(Now(l1)[i], plan[i - 1])
                 /\ \A e \in flight : \E i \in Len(Now(l1))..Len(plan) : Is(e.m, plan[i])
HintSnapshot == Follows(<< <<b, "Snapshot", 0>>, <<a, "Claim", 1>>, <<a, "Beat", 2>> >>)
=============================================================================
