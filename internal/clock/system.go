package clock

import "time"

// epoch is the origin of monotonic readings. It lies fifty years back, so that readings are also
// positive in simulated time, which begins in the year 2000.
var epoch = time.Now().Add(-50 * 365 * 24 * time.Hour)

// Glance reads the ordinary clocks.
func Glance() Instant {
	t := time.Now()
	return Instant{Mono: Mono(t.Sub(epoch)), Wall: Wall(t.UnixNano())}
}

// System returns the clocks of this machine. In simulated time (a testing/synctest bubble) it
// uses only the clock of time.Now, for Raw as well. The kernel's clocks do not follow simulated
// time, and would hardly move.
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
