// Package clock has points in time, as this process's own clocks show them.
package clock

import "time"

// Time is a point on one clock: nanoseconds since that clock's origin. Points of
// different clocks must not be compared; 0 means that the clock was not read.
type Time int64

// Add returns the point d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the time from s to t.
func (t Time) Sub(s Time) time.Duration { return time.Duration(t - s) }

// Instant is one reading of this process's clocks. It means nothing outside the
// process that took it.
//
// Linux's monotonic clock stands still while the machine is suspended, and the
// wall clock may be set; so whoever must not overrate its lease takes the longest
// of the readings (Age), and whoever must not underrate another's silence takes a
// single one that nobody sets.
type Instant struct {
	Mono Time // monotonic, since some 50 years before the process started
	Wall Time // since 1970
	Raw  Time // monotonic and never slewed; 0 if it was not read
	Boot Time // goes on during a suspension; 0 if it was not read
}

// epoch is the origin of monotonic readings. It lies fifty years back so that
// readings are positive in the fake time of a synctest bubble (year 2000) too.
var epoch = time.Now().Add(-50 * 365 * 24 * time.Hour)

// Glance reads the monotonic and the wall clock from one time.Now, some 50 ns.
func Glance() Instant {
	t := time.Now()
	return Instant{Mono: Time(t.Sub(epoch)), Wall: Time(t.UnixNano())}
}

// Add returns the instant d later, by every clock that was read.
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

// Age is the longest of the readings of the time from s to t: at least what has
// passed, unless the wall clock was set back while the machine was suspended and
// the boot clock was not read.
func (t Instant) Age(s Instant) time.Duration {
	age := max(t.Mono.Sub(s.Mono), t.Wall.Sub(s.Wall))
	if t.Boot != 0 && s.Boot != 0 {
		age = max(age, t.Boot.Sub(s.Boot))
	}
	return age
}
