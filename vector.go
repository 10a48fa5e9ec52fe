package neli

import (
	"sync/atomic"
	"time"
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

// term is one uninterrupted time of holding a partition. It is immutable: a
// renewal publishes a new one, so that id, token and V are always read together.
type term struct {
	id    int64 // tells terms of this process apart; the token in exclusive mode
	token int64 // fencing token, noToken in non-exclusive mode
	v     instant
}

const noToken = int64(-1)

// cell is what the world may read of one partition without a lock.
type cell struct {
	term atomic.Pointer[term]
	told atomic.Int64 // id+1 of the term of which the application was told; 0: none
}

// leads decides whether the application leads this partition now, and in which
// term. The term is loaded before the clock is read: the other way round, V
// could be younger than now. And it is looked at again afterwards: a Release does
// not wait for a lapse, so the reading alone would prove nothing to a goroutine
// that was stopped in between.
func (c *cell) leads(h threshold, now func() instant) (*term, instant, bool) {
	t := c.term.Load()
	if t == nil || c.told.Load() != t.id+1 {
		return nil, instant{}, false
	}
	at := now()
	if !h.young(at, t.v) {
		return nil, instant{}, false
	}
	if t2 := c.term.Load(); t2 == nil || t2.id != t.id || c.told.Load() != t.id+1 {
		return nil, instant{}, false
	}
	return t, at, true
}
