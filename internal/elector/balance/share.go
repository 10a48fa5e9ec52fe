package balance

import (
	"maps"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/placement"
)

// share is a call of Rebalance: roles are shared out at once, without tolerance.
type share struct {
	id    int
	moved map[string]int // how many roles each process has got
	over  bool           // nothing is left to move
}

// Share begins such a call; id is the number of its Outcome.
func (m *Mover) Share(id int, now clock.Instant) {
	m.shares = append(m.shares, &share{id: id, moved: map[string]int{}})
	m.lookAt = now.Mono
	m.called++
}

// Sharing reports whether such a call is in progress.
func (m *Mover) Sharing() bool {
	return slices.ContainsFunc(m.shares, func(s *share) bool { return !s.over })
}

// Moves returns the function that plans the moves: with a call in progress, the one without tolerance.
func (m *Mover) Moves(p *placement.Plan) func(me int, holders []int32, movable func(role int) bool, limit int) []placement.Move {
	if m.Sharing() {
		return p.Level
	}
	return p.Moves
}

// Shared ends the calls if nothing is left to move, and returns their Outcomes.
func (m *Mover) Shared(all bool) (ended []request.Outcome) {
	for _, s := range m.shares {
		if all && !s.over {
			s.over = true
			ended = append(ended, request.Outcome{ID: s.id})
		}
	}
	return ended
}

// Leave forgets a call, and returns what has moved meanwhile. Handovers in progress go on.
func (m *Mover) Leave(id int) (moved map[string]int) {
	m.shares = slices.DeleteFunc(m.shares, func(s *share) bool {
		if s.id == id {
			moved = maps.Clone(s.moved)
		}
		return s.id == id
	})
	return moved
}

// Shares returns how many calls there were, and how many roles have moved during them.
func (m *Mover) Shares() (calls, roles uint64) { return m.called, m.shared }

// taken counts a move for all calls in progress.
func (m *Mover) taken(v Move) {
	if !m.Sharing() {
		return
	}
	m.shared += uint64(v.Count)
	for _, s := range m.shares {
		if !s.over {
			s.moved[v.To] += v.Count
		}
	}
}
