// Package mutation shows that each rule of a protocol is guarded. It takes one rule at a time out
// of the source and runs the test that guards it. That test must fail, for the reason that the
// rule exists.
//
// # A table
//
// A rule is a row. It says which text of which file is replaced by what, which test of which
// package must notice, and what that test must say. The table is in a test of the package that it
// is about, and reads like a list of what that package depends on:
//
//	var mutants = []mutation.Mutant{
//		{Rule: "a claimant waits for W(T) of silence", File: "claim.go",
//			Old: "at += l.wait", New: "",
//			Guard: "TestSimulation", Want: "two leaders", Seeds: 3000},
//		{Rule: "the wait is not longer than W(T)", File: "claim.go",
//			Old: "at += l.wait", New: "at += 2 * l.wait",
//			Guard: "TestCrash", Want: `led after \d+ms, wanted within`},
//		{Rule: "a Snapshot is no evidence", File: "fold.go",
//			Old: "case kindBeat, kindClaim:", New: "case kindBeat, kindClaim, kindSnapshot:",
//			Package: "../sim", Guard: "TestFolds", Want: "folds differ at offset"},
//	}
//
//	func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, mutants) }
//
// The name of such a test ends in Guarded or NeedsEveryRule. By that name, make mutants finds it
// and make unit leaves it out.
//
// To run one mutant without the unmutated guards: go test -v -run 'TestRulesAreGuarded/Snapshot'.
// If a rule lengthens a time, its guard must not take its bound from the code under test. The
// file may belong to another package ("../lease/fold.go"), and so may the guard.
//
// Without a rule, several promises may break, and it is a matter of chance which one a simulation
// sees first. So the guard finds the row's Want in NELI_WANT. It may pass over seeds that show
// something else (internal/sim does), and go on until a seed shows what is wanted, or none is
// left. On the unmutated source the variable is empty, and every failure counts.
//
// # What it promises
//
//   - Each guard passes on the unmutated source, with its mutants' seeds and the common
//     binary, before any mutant is tried. NELI_MUTANTS=only leaves that to the caller.
//   - It is a failure that names the rule if a row names a text that is not in the file
//     exactly once, or if a mutant does not build, survives, hangs, or fails without
//     saying what is wanted. So is a Want that any failure would match.
//   - The library itself has no test mode: mutants exist only in overlays (see
//     -overlay in go help build). Nothing is written below the working directory.
//
// It does not promise that a table has all the rules there are, nor that a guard fails for no
// other reason as well.
//
// # How it is fast
//
// Building takes longer than most guards. So all mutants that a package guards are compiled into
// one test binary of that package. A function with mutants becomes a switch over an environment
// variable, with a copy of its body for each mutant, and the original body as the default. A
// mutant that cannot be switched (a constant, a type, a signature, a body with labels) is built
// alone. The binaries are built without cgo, the race detector and inlining, which saves a
// quarter of the compiler's time and costs simulations nothing. As many run at a time as the test
// binary's -parallel allows (the number of cores). 36 mutants of one package of 23,000 lines,
// with as many seeds for the unmutated guards, took 45 s of one core, with one build of about 5 s
// instead of 36.
package mutation
