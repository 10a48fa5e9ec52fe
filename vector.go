package neli

import (
	"time"

	iclock "github.com/goneli/neli/internal/clock"
)

// V and T: the arithmetic that decides who leads. Everything else in this
// package exists to move V truthfully.

// instant is one reading of this process's clock in both of its forms. Linux's
// monotonic clock stands still while the machine is suspended, and the wall
// clock may be set; so whoever must not overrate its lease takes the longer of
// the two, and whoever must not underrate another's silence takes the monotonic
// one. An instant means nothing outside the process that took it.
type instant struct {
	mono time.Duration // since epoch
	wall time.Duration // since 1970
}

// epoch is the origin of monotonic readings. It lies fifty years back so that
// readings are positive in the fake time of a synctest bubble (year 2000) too.
var epoch = time.Now().Add(-50 * 365 * 24 * time.Hour)

// clock reads both clocks from one time.Now, some 50 ns.
func clock() instant {
	t := time.Now()
	return instant{mono: t.Sub(epoch), wall: time.Duration(t.UnixNano())}
}

func (t instant) add(d time.Duration) instant {
	return instant{mono: t.mono + d, wall: t.wall + d}
}

// age is the time from s to t by the monotonic clock: at most what has passed.
func (t instant) age(s instant) time.Duration { return t.mono - s.mono }

// point is the instant as the term table has it.
func (t instant) point() iclock.Instant {
	return iclock.Instant{Mono: iclock.Time(t.mono), Wall: iclock.Time(t.wall)}
}

func instantOf(t iclock.Instant) instant {
	return instant{mono: time.Duration(t.Mono), wall: time.Duration(t.Wall)}
}

// time is the instant on the wall clock, for people.
func (t instant) time() time.Time { return time.Unix(0, int64(t.wall)) }

// ageAtMost is the longer of both readings: at least what has passed, unless
// the wall clock was set back while the machine was suspended.
func (t instant) ageAtMost(s instant) time.Duration {
	return max(t.mono-s.mono, t.wall-s.wall)
}

// threshold is T, with the reading of age that its mode calls for.
type threshold struct {
	t         time.Duration
	exclusive bool
}

// young is the rule of the paper: 0 ≤ now − v < T. Exclusive leadership takes
// the longer reading of the age; the non-exclusive one, which would rather
// overlap than lapse, the monotonic one.
func (h threshold) young(now, v instant) bool {
	age := now.age(v)
	if h.exclusive {
		age = now.ageAtMost(v)
	}
	return 0 <= age && age < h.t
}

// youngAt is young for the term table.
func (h threshold) youngAt(now, v iclock.Instant) bool { return h.young(instantOf(now), instantOf(v)) }

// left is how long V lets leadership last from now on, if no newer evidence comes: 0
// if it is over.
func (h threshold) left(now, v instant) time.Duration {
	if !h.young(now, v) {
		return 0
	}
	if h.exclusive {
		return h.t - now.ageAtMost(v)
	}
	return h.t - now.age(v)
}

const noToken = int64(-1)
