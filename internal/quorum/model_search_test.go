package quorum

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// modelSearch is one exhaustive exploration, breadth first: a counterexample is as short as
// it can be. States are remembered by 64 bits of a hash whose seed is another in every
// process, as in package lease's model.
type modelSearch struct {
	c     *modelConfig
	seed  maphash.Seed
	coder modelCoder
	seen  map[uint64]struct{}
	from  []modelFrom // by state
	moves int

	frontier []modelState
	fault    string
	last     modelFrom // and how it came
}

// modelFrom is how a state was reached: which step, of those that were possible in which
// state.
type modelFrom struct{ state, step int32 }

type modelState struct {
	w *modelWorld
	n int32
}

// explore goes through everything that c allows, until something is wrong.
func explore(c *modelConfig) *modelSearch {
	s := &modelSearch{c: c, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	s.found(newModelWorld(c), modelFrom{-1, 0}, "")
	for len(s.frontier) > 0 && s.fault == "" {
		now := s.frontier
		s.frontier = nil
		for i, at := range now {
			now[i].w = nil
			step := int32(0)
			at.w.steps(func(_ func() string, to *modelWorld, fault string) {
				s.moves++
				if s.fault == "" {
					s.found(to, modelFrom{at.n, step}, fault)
				}
				step++
			})
			if s.fault != "" {
				break
			}
		}
	}
	return s
}

// found takes note of a state.
func (s *modelSearch) found(w *modelWorld, from modelFrom, fault string) {
	if fault == "" {
		fault = w.look()
	}
	if fault != "" {
		s.fault, s.last = fault, from
		return
	}
	h := maphash.Bytes(s.seed, s.coder.encode(w))
	if _, known := s.seen[h]; known {
		return
	}
	s.seen[h] = struct{}{}
	s.from = append(s.from, from)
	s.frontier = append(s.frontier, modelState{w, int32(len(s.from)) - 1})
}

// transcript tells the way to the fault. It goes it again, step by step.
func (s *modelSearch) transcript() string {
	way := []modelFrom{s.last}
	for at := s.last.state; at > 0; at = s.from[at].state {
		way = append([]modelFrom{s.from[at]}, way...)
	}
	w := newModelWorld(s.c)
	var b strings.Builder
	b.WriteString(w.views())
	for _, f := range way {
		step := int32(0)
		var next *modelWorld
		w.look()
		w.steps(func(what func() string, to *modelWorld, _ string) {
			if step == f.step {
				fmt.Fprintf(&b, "%s\n", what())
				next = to
			}
			step++
		})
		w = next
		b.WriteString(w.views())
	}
	return b.String() + "FAULT: " + s.fault
}

func (s *modelSearch) String() string {
	if s.fault == "" {
		return "nothing is wrong"
	}
	return s.transcript()
}
