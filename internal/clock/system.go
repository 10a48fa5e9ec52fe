package clock

import "time"

// epoch is the origin of monotonic readings. It lies fifty years back so that
// readings are positive in simulated time (which begins in the year 2000) too.
var epoch = time.Now().Add(-50 * 365 * 24 * time.Hour)

// Glance reads the ordinary clocks.
func Glance() Instant {
	t := time.Now()
	return Instant{Mono: Mono(t.Sub(epoch)), Wall: Wall(t.UnixNano())}
}

// System returns the clocks of this machine. In simulated time (a testing/synctest
// bubble) there is only the one clock that time.Now shows, so Raw is that: the
// kernel's clocks, which know nothing of the bubble, would hardly move.
func System() Clock {
	if t, ok := kernelWall(); ok {
		if d := time.Since(t); d < -time.Hour || d > time.Hour {
			return simulated{}
		}
	}
	return system{}
}

type system struct{}

func (system) Glance() Instant { return Glance() }

func (system) Now() Instant {
	t := Glance()
	t.Raw, t.Boot = kernelClocks(t)
	return t
}

type simulated struct{}

func (simulated) Glance() Instant { return Glance() }

func (simulated) Now() Instant {
	t := Glance()
	t.Raw = Raw(t.Mono)
	return t
}
