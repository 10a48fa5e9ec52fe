// Package explore visits every state that a model can reach. It knows nothing about leases, and
// is for tests only. Where package seeded draws at random, this one is exhaustive.
//
// The search is breadth first, so a counterexample is as short as possible. A state is remembered
// by a hash of 64 bits, whose seed differs in every process. n states collide with a probability
// of n²/2⁶⁵, 1 in 37 million for a million. What one run misses because of that, the next run
// probably finds.
package explore

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// State is a state of the model. A method of one state must not change another state.
type State[S any] interface {
	// Steps calls step with each state that may follow, always in the same order. what returns a
	// description of the step; fault says what is wrong with it, "" if nothing.
	Steps(step func(what func() string, to S, fault string))
	// Look returns what is wrong with the state, "" if nothing. It may record something in the state.
	Look() (fault string)
	// Views describes the state, for a transcript.
	Views() string
}

// Search is one exploration.
type Search[S State[S]] struct {
	Moves int    // number of steps taken
	Fault string // what is wrong; "" if nothing

	begin  func() S
	encode func(S) []byte
	seed   maphash.Seed
	seen   map[uint64]struct{}
	from   []origin // by state: how it was reached

	frontier []numbered[S]
	last     origin // how the state with the fault was reached
}

// origin is how a state was reached: by which step from which state.
type origin struct{ state, step int32 }

type numbered[S any] struct {
	s S
	n int32
}

// All visits everything that may follow from the state that begin makes, until it finds a fault.
// States for which encode returns the same bytes count as one state. encode may use the bytes
// again for the next state.
func All[S State[S]](begin func() S, encode func(S) []byte) *Search[S] {
	e := &Search[S]{begin: begin, encode: encode, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	e.found(begin(), origin{-1, 0}, "")
	for len(e.frontier) > 0 && e.Fault == "" {
		now := e.frontier
		e.frontier = nil
		for i, at := range now {
			now[i] = numbered[S]{} // release it, since there are many
			e.follow(at)
			if e.Fault != "" {
				break
			}
		}
	}
	return e
}

// follow takes all steps from one state.
func (e *Search[S]) follow(at numbered[S]) {
	step := int32(0)
	at.s.Steps(func(_ func() string, to S, fault string) {
		e.Moves++
		if e.Fault == "" {
			e.found(to, origin{at.n, step}, fault)
		}
		step++
	})
}

// found notes a state.
func (e *Search[S]) found(s S, from origin, fault string) {
	if fault == "" {
		fault = s.Look()
	}
	if fault != "" {
		e.Fault, e.last = fault, from
		return
	}
	h := maphash.Bytes(e.seed, e.encode(s))
	if _, known := e.seen[h]; known {
		return
	}
	e.seen[h] = struct{}{}
	e.from = append(e.from, from)
	e.frontier = append(e.frontier, numbered[S]{s, int32(len(e.from)) - 1})
}

// States returns the number of states found.
func (e *Search[S]) States() int { return len(e.from) }

// String describes the way to the fault. It takes the steps again, one by one.
func (e *Search[S]) String() string {
	if e.Fault == "" {
		return "no fault found"
	}
	way := []origin{e.last}
	for at := e.last.state; at > 0; at = e.from[at].state {
		way = append([]origin{e.from[at]}, way...)
	}
	s := e.begin()
	var b strings.Builder
	b.WriteString(s.Views())
	for _, o := range way {
		if o.state < 0 {
			continue // the first state has the fault
		}
		step := int32(0)
		var next S
		s.Look()
		s.Steps(func(what func() string, to S, _ string) {
			if step == o.step {
				fmt.Fprintf(&b, "%s\n", what())
				next = to
			}
			step++
		})
		s = next
		b.WriteString(s.Views())
	}
	return b.String() + "FAULT: " + e.Fault
}
