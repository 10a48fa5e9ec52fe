// Package oracle checks the record of a run. It finds violations in what all members saw of their own leadership and
// did to the store, by one clock. Package witness says what samples prove. These are pure functions, and the tests feed
// them forged records that they must reject.
package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/store"
	"github.com/goneli/neli/lab/witness"
)

// Limits are the bounds that the checks use.
type Limits struct {
	Recovery Recovery      // longest times without a leader, by kind of fault
	Pace     Pace          // of non-exclusive mode
	Crash    time.Duration // longest time without a leader after a crash, non-exclusive
	Register time.Duration // how long the check of one register may run
	Logs     bool          // exclusive mode has a majority of logs, which has no history
	Peers    bool          // there is no topic, and there is no non-exclusive mode
}

// Verdict is the result of all checks.
type Verdict struct {
	Violations []string
	Terms      [][]witness.Term // by role
	Gaps       []Gap
	FailOvers  []FailOver    // by kind of fault
	Uncovered  time.Duration // the longest time certainly without a leader, non-exclusive
	Writes     Writes
	Registers  []string // by role
}

// ignore is the shortest gap that is reported: a few samples.
const ignore = 5 * time.Millisecond

// Judge checks a record against all promises.
func Judge(r history.Record, log []store.Entry, l Limits) Verdict {
	v := Verdict{Writes: CountWrites(r.Ops, log), Violations: slices.Clone(r.Log.Faults)}
	var all []witness.Term
	modes := history.Modes
	if l.Peers {
		modes = history.Exclusive + 1
	}
	settled := Settled(r.Ops, log)
	for role := range r.Roles {
		terms := Terms(r.Lives, role)
		v.Terms = append(v.Terms, terms)
		all = append(all, terms...)
		v.Violations = append(v.Violations, witness.TermFaults(terms)...)
		if !l.Peers {
			if !l.Logs {
				v.Violations = append(v.Violations, ClaimFaults(r.Log, terms)...)
			}
			v.Violations = append(v.Violations, CoverFaults(r, role, l.Pace, l.Crash)...)
			v.Uncovered = max(v.Uncovered, witness.Longest(uncovered(r, role)))
		}
		verdict, ok := Linearizable(settled, role, l.Register)
		v.Registers = append(v.Registers, verdict)
		if !ok {
			v.Violations = append(v.Violations, fmt.Sprintf("role %d: its register is %s", role, verdict))
		}
		for mode := range modes {
			v.Gaps = append(v.Gaps, Gaps(r, mode, role, l.Pace, ignore)...)
		}
	}
	slices.SortFunc(v.Gaps, func(a, b Gap) int { return cmp.Compare(a.From, b.From) })
	v.Violations = append(v.Violations, WriteFaults(r.Ops, log, all)...)
	v.Violations = append(v.Violations, Recovered(r, v.Gaps, l.Recovery)...)
	v.FailOvers = FailOvers(r, v.Gaps, l.Recovery)
	v.Violations = append(v.Violations, scarce(r, v)...)
	return v
}

// Terms returns all terms of one role of exclusive mode, sorted by their beginning.
func Terms(lives []history.Life, role int) []witness.Term {
	var terms []witness.Term
	for _, l := range lives {
		terms = append(terms, witness.Terms(l.Member, l.Runs.Of(history.Exclusive, role))...)
	}
	slices.SortFunc(terms, func(a, b witness.Term) int {
		return cmp.Or(cmp.Compare(a.First.After, b.First.After), cmp.Compare(a.Token, b.Token), cmp.Compare(a.Member, b.Member))
	})
	return terms
}

// scarce reports that there is too little data: a check of little data proves nothing.
func scarce(r history.Record, v Verdict) []string {
	var faults []string
	for role, terms := range v.Terms {
		if len(terms) == 0 {
			faults = append(faults, fmt.Sprintf("role %d was never led", role))
		}
	}
	if v.Writes.Accepted == 0 {
		faults = append(faults, "no write was ever accepted")
	}
	for _, l := range r.Lives {
		faults = append(faults, unsampled(l, r.Lives, r.Roles)...)
	}
	return faults
}
