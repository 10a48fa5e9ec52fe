package neli

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/nonexclusive"
)

// V and T: the arithmetic that decides whether this process leads. All other code exists to keep V
// true.

// threshold is T, and which reading of V's age is compared with it.
type threshold struct {
	t         time.Duration
	exclusive bool
}

func (s *settings) threshold() threshold {
	return threshold{t: s.HeartbeatTimeout, exclusive: s.Mode == Exclusive}
}

// young is the rule of the paper: 0 ≤ now − v < T. Exclusive mode takes the longest reading of the
// age, and ends leadership somewhat before T (lease.Young). Non-exclusive mode, which prefers an
// overlap to a gap, takes the monotonic clock's.
func (h threshold) young(now, v clock.Instant) bool {
	if h.exclusive {
		return lease.Young(now, v, h.t)
	}
	return nonexclusive.Young(now, v, h.t)
}

// left returns how long leadership lasts from now on without newer evidence than v: 0 if it is
// over.
func (h threshold) left(now, v clock.Instant) time.Duration {
	switch {
	case !h.young(now, v):
		return 0
	case h.exclusive:
		return clock.Hold(h.t) - now.Age(v)
	}
	return h.t - now.Mono.Sub(v.Mono)
}

// noToken is the token of a term in non-exclusive mode.
const noToken = nonexclusive.NoToken
