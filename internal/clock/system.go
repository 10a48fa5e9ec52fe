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
// uses only the clock of time.Now, for Raw as well: the kernel's clocks do not follow simulated time.
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

// Fractions of T. They determine when a process sends, and when it gives up waiting. Safety
// depends on none of them, only on Hold and Wait.

// Behind is T/20. A process whose own record takes longer to come back is behind. It puts off
// what others may have done already, and looks again after T/20.
func Behind(t time.Duration) time.Duration { return t / 20 }

// Stalled is T/4. If an own record takes longer to come back, the log is stalled, and others'
// silence on it proves nothing. Several such periods fit into one lease.
func Stalled(t time.Duration) time.Duration { return t / 4 }

// Resend is T/4. A Release that has not come back within it is sent again: it may be lost, and
// without it its roles are free only after T.
func Resend(t time.Duration) time.Duration { return t / 4 }

// Recent is T/2. A process or log that was heard within it counts as present.
func Recent(t time.Duration) time.Duration { return t / 2 }

// Patience is T/2. A process waits at most that long for others to act in its place: they may all be waiting.
func Patience(t time.Duration) time.Duration { return t / 2 }

// Pause is T/8, the shortest pause before something that has failed is tried again. With
// less, retries keep a log as busy as the records that they replace.
func Pause(t time.Duration) time.Duration { return t / 8 }

// StartupWait is T/50, the wait for other members to announce themselves after a start.
func StartupWait(t time.Duration) time.Duration { return t / 50 }

// LongestStep is T/50. A process that does one thing for longer delays its beats, and its answers
// to others. Information about many roles may be that old, too.
func LongestStep(t time.Duration) time.Duration { return t / 50 }

// SayWaiting is T/10. A process that may not claim yet logs that after this time at the latest.
func SayWaiting(t time.Duration) time.Duration { return t / 10 }

// LongTrip is T/100. Waits allow for round trips of up to LongTrip or link.MaxRoundTrip, whichever is longer.
func LongTrip(t time.Duration) time.Duration { return t / 100 }
