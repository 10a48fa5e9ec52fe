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
=============================================================================
