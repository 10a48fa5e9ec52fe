package quorum

import (
	"math/rand/v2"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// simClock turns true time into readings. The raw clock runs at 1 ± ρ, and the others at that
// rate times 1 ± σ. The wall clock is set whenever it is too far from true time. While the rates
// stay the same, readings are linear in true time.
type simClock struct {
	since     time.Duration // true time when the present rates began
	at        clock.Instant // the readings at that time
	raw, slew float64       // rate errors since then
}

// simEpoch is the reading of a correct wall clock at true time 0.
const simEpoch = clock.Wall(1000 * time.Hour)

func newSimClock(r *rand.Rand, now, off time.Duration) simClock {
	point := func() time.Duration { return time.Hour + time.Duration(r.Int64N(int64(1000*time.Hour))) }
	return simClock{since: now, at: clock.Instant{Mono: clock.Mono(point()), Wall: simEpoch.Add(now + off), Raw: clock.Raw(point())}}
}

// read returns the readings at true time now.
func (c *simClock) read(now time.Duration) clock.Instant {
	d := float64(now-c.since) * (1 + c.raw)
	ordinary := time.Duration(d * (1 + c.slew))
	at := c.at
	at.Mono, at.Wall, at.Raw = at.Mono.Add(ordinary), at.Wall.Add(ordinary), at.Raw.Add(time.Duration(d))
	return at
}

// piece begins a new stretch of time, with other rates.
func (c *simClock) piece(now time.Duration) { c.at, c.since = c.read(now), now }

// off returns by how much the wall clock is ahead.
func (c *simClock) off(now time.Duration) time.Duration {
	return c.read(now).Wall.Sub(simEpoch.Add(now))
}

// trueIn estimates how long it takes until the ordinary clocks have advanced by d.
func (c *simClock) trueIn(d time.Duration) time.Duration {
	return time.Duration(float64(d)/((1+c.raw)*(1+c.slew))) + 1
}
