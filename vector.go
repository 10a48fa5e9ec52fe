package neli

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/nonexclusive"
)

// V and T: the arithmetic that decides who leads. Everything else exists to move V
// truthfully.

// threshold is T, with the reading of age that its mode calls for.
type threshold struct {
	t         time.Duration
	exclusive bool
}

func (s *settings) threshold() threshold {
	return threshold{t: s.timeout, exclusive: s.mode == Exclusive}
}

// young is the rule of the paper: 0 ≤ now − v < T. Exclusive leadership takes the longest
// reading of the age, and stops somewhat before T (lease.Young); the non-exclusive one,
// which would rather overlap than lapse, takes the monotonic clock's.
func (h threshold) young(now, v clock.Instant) bool {
	if h.exclusive {
		return lease.Young(now, v, h.t)
	}
	return nonexclusive.Young(now, v, h.t)
}

// left is how long V lets leadership last from now on, if no newer evidence comes: 0
// if it is over.
func (h threshold) left(now, v clock.Instant) time.Duration {
	switch {
	case !h.young(now, v):
		return 0
	case h.exclusive:
		return clock.Hold(h.t) - now.Age(v)
	}
	return h.t - now.Mono.Sub(v.Mono)
}

// noToken is the token of a term that has none.
const noToken = nonexclusive.NoToken
