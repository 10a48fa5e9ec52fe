/*
Package clock reads this process's clocks, and has the arithmetic of leases.

A lease is compared with two clocks that need not agree, but run at nearly the
same rate: the holder stops in time by its own clock, and the claimant waits by
its own. Each must err on its own side:

	holder:    age of V      < Hold(T) = T(1−σ)   by the clock that shows most (Age)
	claimant:  silence heard ≥ Wait(T) = T(1+ρ)/(1−ρ) + margin   by a clock that nobody slews (Raw)

ρ bounds the rate error of the raw clock, a crystal's. The clocks that a program
usually reads are slewed on top of that, by chrony up to 8.3 % after a step that it
may not make. σ covers that, on the holder's side only.

The package decides nothing else and knows nothing of logs or roles.
*/
package clock

import (
	"math"
	"time"
)

// Point is a reading of the clock C of this process, in nanoseconds since that clock's own
// origin. Points of different clocks have different types, so that the compiler refuses to
// compare them. The zero Point lies before everything that happens, and means "not yet".
type Point[C any] int64

type (
	mono struct{}
	wall struct{}
	raw  struct{}
	boot struct{}
)

type (
	// Mono is a point on the ordinary monotonic clock. Time synchronization slews that clock, and
	// on Linux it stands still while the machine is suspended. Timers run by it.
	Mono = Point[mono]
	// Wall is a point on the wall clock, since 1970. Anybody may set that clock at any moment.
	Wall = Point[wall]
	// Raw is a point on a clock that nobody slews. Other processes' leases are measured by it.
	Raw = Point[raw]
	// Boot is a point on a clock that runs like Mono, but also during a suspension.
	Boot = Point[boot]
)

// Never is later than every point that a clock shows.
const Never = math.MaxInt64

// Add returns t + d; Never stays Never.
func (t Point[C]) Add(d time.Duration) Point[C] {
	if t == Never {
		return Never
	}
	return t + Point[C](d)
}

// Sub returns t − u.
func (t Point[C]) Sub(u Point[C]) time.Duration { return time.Duration(t - u) }

// Instant is one reading of all of this process's clocks. It means nothing outside the process that took it.
type Instant struct {
	Mono Mono
	Wall Wall
	Raw  Raw  // 0 in a glance
	Boot Boot // 0 in a glance, and on systems that have no such clock
}

// Alike returns an instant at which all clocks show d, for tests and models whose clocks run alike.
func Alike(d time.Duration) Instant {
	return Instant{Mono: Mono(d), Wall: Wall(d), Raw: Raw(d), Boot: Boot(d)}
}

// HourAnd returns an instant at which all clocks show an hour and d.
func HourAnd(d time.Duration) Instant { return Alike(time.Hour + d) }

// Add returns the instant at which every clock shows d more.
func (t Instant) Add(d time.Duration) Instant {
	t.Mono, t.Wall = t.Mono.Add(d), t.Wall.Add(d)
	if t.Raw != 0 {
		t.Raw = t.Raw.Add(d)
	}
	if t.Boot != 0 {
		t.Boot = t.Boot.Add(d)
	}
	return t
}

// Age returns how long ago s was, by the clock that shows most. But for slewing, it is at least the time that has
// passed, unless the wall clock was set back during a suspension and there is no Boot. It is
// negative only if s was read after t.
func (t Instant) Age(s Instant) time.Duration {
	age := max(t.Mono.Sub(s.Mono), t.Wall.Sub(s.Wall))
	if t.Boot != 0 && s.Boot != 0 {
		age = max(age, t.Boot.Sub(s.Boot))
	}
	return age
}

// MonoOf returns the time on the monotonic clock at which the raw clock will show at, going by
// this reading of both. Timers run by the monotonic clock; others' leases are measured by the raw
// one.
func (t Instant) MonoOf(at Raw) Mono {
	if at == Never {
		return Never
	}
	return t.Mono.Add(at.Sub(t.Raw))
}

// Time returns the instant on the wall clock, for people.
func (t Instant) Time() time.Time { return time.Unix(0, int64(t.Wall)) }

// Clock is a process's clocks. Its methods may be called concurrently.
type Clock interface {
	// Now reads all clocks, in about a microsecond.
	Now() Instant
	// Glance reads only Mono and Wall, from one time.Now: some 50 ns.
	Glance() Instant
}

const (
	// Sigma is σ, the greatest difference between the ordinary clock's rate and the raw one's.
	// Chrony slews by up to 83,333 ppm, adjtimex by up to 100,000.
	Sigma = 0.1
	// Tmax is the longest lease that any process of any version may have. A process that does not
	// know the fold has to allow for it.
	Tmax = 60 * time.Second
	// margin covers the granularity of clocks.
	margin = time.Millisecond
)

// Hold returns T(1−σ): how old a holder's newest evidence may be, by its own clocks, while it leads.
// T is promised in true time; allowing for σ is up to the holder.
func Hold(t time.Duration) time.Duration { return t - t/10 }

// Wait returns W(T) = T(1+ρ)/(1−ρ) + margin: how long a claimant must have read nothing of a
// holder, by its raw clock, until a lease of T is over by any holder's clock. Hold(T) by the
// slowest holder's clock is never longer than Wait(T) by the fastest claimant's. With the present
// (1−σ), neither can be made tighter.
func Wait(t time.Duration, rho float64) time.Duration {
	return time.Duration(math.Ceil(float64(t)*(1+rho)/(1-rho))) + margin
}

// FreeAt returns when a lease of t is over by any clock of its holder, if nothing was read of the
// holder since heard. Every rule "free after W" uses this function.
func FreeAt(heard Raw, t time.Duration, rho float64) Raw { return heard.Add(Wait(t, rho)) }
