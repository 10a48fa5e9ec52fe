// Package explore goes through every state that a model can reach. It knows nothing of
// leases, and is for tests only; package seeded draws where this one is exhaustive.
//
// The search is breadth first, so a counterexample is as short as it can be. A state is
// remembered by 64 bits of a hash whose seed is another in every process: n states collide
// at odds of n²/2⁶⁵, 1 in 30 million for a million, and what one run might miss the next
// one sees.
package explore

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// State is a state of the model. What is done with one state does not change another.
type State[S any] interface {
	// Steps calls step with each state that may follow, always in the same order: what says
	// in words what happens, fault what is wrong with that; "" if nothing is.
	Steps(step func(what func() string, to S, fault string))
	// Look says what is wrong with the state, which it may write down in it.
	Look() (fault string)
	// Views are the state in words, for a transcript.
	Views() string
}

// Search is one exploration.
type Search[S State[S]] struct {
	Moves int    // steps that were tried
	Fault string // what is wrong, "" if nothing is

	begin  func() S
	encode func(S) []byte
	seed   maphash.Seed
	seen   map[uint64]struct{}
	from   []origin // by state

	frontier []numbered[S]
	last     origin // how the fault came
}

// origin is how a state was reached: which step, of those that were possible in which
// state.
type origin struct{ state, step int32 }

type numbered[S any] struct {
	s S
	n int32
}

// All goes through everything that may follow from the state that begin makes, until
// something is wrong. States that encode makes the same bytes of are one state; the bytes
// may be used again for the next.
func All[S State[S]](begin func() S, encode func(S) []byte) *Search[S] {
	e := &Search[S]{begin: begin, encode: encode, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	e.found(begin(), origin{-1, 0}, "")
	for len(e.frontier) > 0 && e.Fault == "" {
		now := e.frontier
		e.frontier = nil
		for i, at := range now {
			now[i] = numbered[S]{} // it is not needed any more, and there are many
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

// States is how many there are.
func (e *Search[S]) States() int { return len(e.from) }

// String tells the way to the fault. It goes it again, step by step.
func (e *Search[S]) String() string {
	if e.Fault == "" {
		return "nothing is wrong"
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
			continue // it is wrong from the beginning
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
