package lease

import (
	"math/rand/v2"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// The clocks of a simulated process. True time is a Duration since the simulation began. No
// process can read it.

// simClock turns true time into readings. The raw clock runs at 1 ± ρ, and the others at that
// rate times 1 ± σ. During a suspension Mono and Raw stand still. While the rates stay the same,
// readings are linear in true time.
type simClock struct {
	since     time.Duration // true time when the present rates began
	at        clock.Instant // the readings at that time
	raw, slew float64       // rate errors since then
	suspended bool
	boot      bool // the machine has CLOCK_BOOTTIME
}

// newSimClock draws the first readings, so that no two processes' clocks agree.
func newSimClock(r *rand.Rand, now time.Duration) simClock {
	point := func() time.Duration { return time.Hour + time.Duration(r.Int64N(int64(1000*time.Hour))) }
	c := simClock{since: now, boot: r.IntN(4) > 0}
	c.at = clock.Instant{Mono: clock.Mono(point()), Wall: clock.Wall(point()), Raw: clock.Raw(point())}
	if c.boot {
		c.at.Boot = clock.Boot(point())
	}
	return c
}

// read returns the readings at true time now.
func (c *simClock) read(now time.Duration) clock.Instant {
	d := float64(now-c.since) * (1 + c.raw)
	ordinary := time.Duration(d * (1 + c.slew))
	at := c.at
	at.Wall = at.Wall.Add(ordinary)
	if c.boot {
		at.Boot = at.Boot.Add(ordinary)
	}
	if !c.suspended {
		at.Mono, at.Raw = at.Mono.Add(ordinary), at.Raw.Add(time.Duration(d))
	}
	return at
}

// piece begins a new stretch of time, with other rates.
func (c *simClock) piece(now time.Duration) { c.at, c.since = c.read(now), now }

// step sets the wall clock. Setting it back makes no age smaller, since Mono goes on. But without
// Boot it would hide a suspension, which no lease survives.
func (c *simClock) step(now, d time.Duration) {
	if d < 0 && !c.boot {
		return
	}
	c.piece(now)
	c.at.Wall = c.at.Wall.Add(d)
}

// trueIn estimates how long it takes until the raw clock, or else the others, have advanced by d.
func (c *simClock) trueIn(d time.Duration, raw bool) time.Duration {
	rate := 1 + c.raw
	if !raw {
		rate *= 1 + c.slew
	}
	return time.Duration(float64(d)/rate) + 1
}
