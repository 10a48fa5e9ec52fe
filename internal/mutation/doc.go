// Package mutation shows that each rule of a protocol is guarded: it takes one
// rule at a time out of the source, runs the test that guards the rule, and wants
// that test to fail for the reason that the rule stands for.
//
// # A table
//
// A rule is a row: which text of which file is replaced by what, which test of
// which package must notice, and what that test must say. The table is a test of
// the package that it is about, and reads like a list of what the package rests on:
//
//	var mutants = []mutation.Mutant{
//		{Rule: "a claimant waits for T′ of silence", File: "claim.go",
//			Old: "at += l.wait", New: "",
//			Guard: "TestSimulation", Want: "two leaders", Seeds: 3000},
//		{Rule: "the wait is not longer than T′", File: "claim.go",
//			Old: "at += l.wait", New: "at += 2 * l.wait",
//			Guard: "TestCrash", Want: `led after \d+ms, wanted within`},
//		{Rule: "a Snapshot is no evidence", File: "fold.go",
//			Old: "case kindBeat, kindClaim:", New: "case kindBeat, kindClaim, kindSnapshot:",
//			Package: "../sim", Guard: "TestFolds", Want: "folds differ at offset"},
//	}
//
//	func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, mutants) }
//
// The name of such a test ends in Guarded or NeedsEveryRule: by that make mutants
// finds it, and make unit leaves it out.
//
// One mutant of many, without the unmutated guards:
// go test -v -run 'TestRulesAreGuarded/Snapshot'. A rule that lengthens a time has a
// guard whose bound is not taken from the code under test. A file may be another
// package's ("../lease/fold.go"), as may the guard be.
//
// A rule that is missing breaks more than one promise, and which one a simulation sees
// first is a matter of chance. So the guard finds the row's Want in NELI_WANT: it may pass
// over the seeds that show something else (internal/sim does), and goes on until one shows
// what is wanted, or none is left. On the unmutated source the variable is empty, and
// every failure counts.
//
// # What it promises
//
//   - Each guard passes on the unmutated source, with the seeds and the binary of
//     its mutants, before any mutant is tried.
//   - A row that names a text which is not in the file exactly once, a mutant that
//     does not build, survives, hangs, or fails without saying what is wanted, is a
//     failure that names the rule. So is a Want that any failure would match.
//   - The library itself carries no test mode: mutants exist in overlays only (see
//     -overlay in go help build). Nothing is written below the working directory.
//
// It does not promise that the rules of a table are all the rules there are, nor
// that a guard fails for no other reason beside the wanted one.
//
// # How it is fast
//
// Building is dearer than most guards. So all mutants that a package guards are
// compiled into one test binary of that package: a function with mutants becomes a
// switch over an environment variable, with a copy of its body for each of them and
// the body as it is by default. What cannot be switched (a constant, a type, a
// signature, a body with labels) is built alone. The binaries are built without cgo,
// the race detector and inlining (which saves a quarter of the compiler's time and
// costs simulations nothing), and as many run at a time as the test binary's -parallel
// allows (the number of cores). 36 mutants of one package of 23,000 lines, with as many
// seeds for the unmutated guards, took 45 s of one core, with one build of about 5 s
// instead of 36.
package mutation
