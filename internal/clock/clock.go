/*
Package clock reads this process's clocks, and has the arithmetic of leases.

A lease is compared with two clocks that need not agree, only run at nearly the
same rate: the holder's, by which it stops in time, and the claimant's, by which
that waits. Each must err on its own side:

	holder:    age of V      < Hold(T) = T(1−σ)   by the clock that shows most (Age)
	claimant:  silence heard ≥ Wait(T) = T(1+ρ)/(1−ρ) + margin   by a clock that nobody slews (Raw)

ρ bounds the rate error of the raw clock, a crystal's. The clocks that a program
usually reads are slewed on top of that, by chrony up to 8.3 % after a step that it
may not make; σ covers it, and only the holder's side needs to know.

The package decides nothing else and knows nothing of logs or roles.
*/
package clock

import (
	"math"
	"time"
)

// Time is a point on one clock of this process, in nanoseconds since an origin of
// that clock's own. Times of different clocks must not be compared. The zero Time
// lies before everything that happens, and stands for "not yet".
type Time int64

// Never is later than every Time that a clock shows.
const Never = Time(math.MaxInt64)

// Add returns t + d; Never stays Never.
func (t Time) Add(d time.Duration) Time {
	if t == Never {
		return Never
	}
	return t + Time(d)
}

// Sub returns t − u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Instant is one reading of all of this process's clocks. It means nothing outside
// the process that took it.
type Instant struct {
	Mono Time // the ordinary monotonic clock: slewed, and on Linux it stands still in a suspension
	Wall Time // since 1970; may be set at any moment
	Raw  Time // slewed by nobody; 0 in a glance
	Boot Time // as Mono, but it goes on in a suspension; 0 where there is none, and in a glance
}

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

// Age is how long ago s was by the clock that shows most: at least what has passed,
// unless the wall clock was set back during a suspension and there is no Boot. It is
// negative only if s was read after t.
func (t Instant) Age(s Instant) time.Duration {
	age := max(t.Mono-s.Mono, t.Wall-s.Wall)
	if t.Boot != 0 && s.Boot != 0 {
		age = max(age, t.Boot-s.Boot)
	}
	return time.Duration(age)
}

// Time is the instant on the wall clock, for people.
func (t Instant) Time() time.Time { return time.Unix(0, int64(t.Wall)) }

// Clock is a process's clocks. Its methods may be called concurrently.
type Clock interface {
	// Now reads all clocks, in about a microsecond.
	Now() Instant
	// Glance reads only Mono and Wall, from one time.Now: some 50 ns.
	Glance() Instant
}

const (
	// Sigma is σ: by how much the ordinary clock's rate may differ from the raw one's.
	// Chrony slews by up to 83,333 ppm, adjtimex by up to 100,000.
	Sigma = 0.1
	// Tmax is the longest lease that any process of any version may have. A process that
	// knows nothing yet has to reckon with it.
	Tmax = 60 * time.Second
	// margin covers the granularity of clocks.
	margin = time.Millisecond
)

// Hold is T(1−σ): how old its newest evidence may be by the holder's own clocks while
// it leads. T is the promise in true time; σ is the holder's own business.
func Hold(t time.Duration) time.Duration { return t - t/10 }

// Wait is W(T) = T(1+ρ)/(1−ρ) + margin: for how long a claimant must have read nothing
// of a holder, by its raw clock, until a lease of T is over by any holder's clock.
// Hold(T) by the slowest holder's clock is never longer than Wait(T) by the fastest
// claimant's, and with (1−σ) as it is neither can be made tighter.
func Wait(t time.Duration, rho float64) time.Duration {
	return time.Duration(math.Ceil(float64(t)*(1+rho)/(1-rho))) + margin
}
