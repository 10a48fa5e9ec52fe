package elector

import (
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/term"
)

// deaf reports whether the application cannot be told of a new term for long: it is still at work on
// a former event.
func (s *Settings) deaf(now clock.Instant) bool { return s.Deaf != nil && s.Deaf(now) }

// able reports whether a process would lead a role that it won now.
func able(set *Settings, d Desired, now clock.Instant) bool {
	return d.Willing(now) && set.Alive(now) && !set.deaf(now)
}

// giveBackUntold gives back the roles of which the application was not told, if it cannot be told for
// long: nobody would work for them, and nobody else could lead them. It looks at all held roles, so it
// does that once in lookEvery.
func (s *shard) giveBackUntold(in *In) {
	if in.now.Mono < s.untoldAt || !s.set.deaf(in.now) {
		return
	}
	s.untoldAt = in.now.Mono.Add(lookEvery)
	var untold []int32
	for local := range s.own.From(0) {
		if len(untold) == handover.StepRoles {
			break
		}
		if !s.terms.Told(s.Role(local)) {
			untold = append(untold, local)
		}
	}
	s.giveBack(untold, nil, term.NotPulsed, in)
}
