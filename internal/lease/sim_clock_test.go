package lease

import (
	"math/rand/v2"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// The clocks of a simulated process. True time is a Duration since the simulation
// began; no process can read it.

// simClock turns true time into readings. The raw clock runs at 1 ± ρ, the ordinary
// ones at that times 1 ± σ; in a suspension Mono and Raw stand still. Each piece of time
// with one rate is linear, from the reading at its beginning.
type simClock struct {
	since     time.Duration // true time at which the piece began
	at        clock.Instant // and what the clocks showed then
	raw, slew float64       // rate errors of this piece
	suspended bool
	boot      bool // CLOCK_BOOTTIME can be had
}

// newSimClock starts clocks that agree with nobody's.
func newSimClock(r *rand.Rand, now time.Duration) simClock {
	point := func() time.Duration { return time.Hour + time.Duration(r.Int64N(int64(1000*time.Hour))) }
	c := simClock{since: now, boot: r.IntN(4) > 0}
	c.at = clock.Instant{Mono: clock.Mono(point()), Wall: clock.Wall(point()), Raw: clock.Raw(point())}
	if c.boot {
		c.at.Boot = clock.Boot(point())
	}
	return c
}

// read shows the clocks at true time now.
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

// piece ends the present piece of time.
func (c *simClock) piece(now time.Duration) { c.at, c.since = c.read(now), now }

// step sets the wall clock. Set back it takes nothing from an age: Mono shows more. But
// without Boot a suspension would be hidden by it, which no lease survives.
func (c *simClock) step(now, d time.Duration) {
	if d < 0 && !c.boot {
		return
	}
	c.piece(now)
	c.at.Wall = c.at.Wall.Add(d)
}

// trueIn is about how long it takes until the raw, or else the ordinary, clocks show d
// more.
func (c *simClock) trueIn(d time.Duration, raw bool) time.Duration {
	rate := 1 + c.raw
	if !raw {
		rate *= 1 + c.slew
	}
	return time.Duration(float64(d)/rate) + 1
}
